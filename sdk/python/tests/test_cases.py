"""The clients answer as the table that all clients share says."""

import math
import unittest

import weir

from . import support
from .blocking import Blocking

ERRORS = {
    "invalid": weir.Invalid,
    "hold-unknown": weir.HoldUnknown,
    "hold-expired": weir.HoldExpired,
    "out-of-range": weir.OutOfRange,
}


class Cases(unittest.TestCase):
    Client, name = weir.Client, "python"

    def test_cases(self):
        with self.Client(support.URL, timeout=30) as client:
            for case in support.cases(self.name)["checks"]:
                with self.subTest(case["name"]):
                    self.run_case(client, case["steps"])

    def test_counters(self):
        with self.Client(support.URL, timeout=30) as client:
            for i, step in enumerate(support.cases(self.name)["counters"], 1):
                if "error" in step:
                    with self.assertRaises(ERRORS[step["error"]], msg=f"step {i}"):
                        self.count(client.counters, step)
                else:
                    self.assertEqual(step["want"], self.count(client.counters, step), f"step {i}")
            self.assertEqual(client.counters.add(weir.CounterDelta(f"{self.name}-tenth", by=0.1 + 0.2)), [0.3])  # which is 0.30000000000000004
            for by in (math.nan, math.inf):
                with self.assertRaises(weir.Invalid):
                    client.counters.add(weir.CounterDelta(f"{self.name}-tenth", by=by))

    def count(self, counters, step):
        """What comes of a call about counters, as a list of numbers."""
        name = step["call"]
        kinds = {"add": weir.CounterDelta, "set": weir.CounterSetting, "reset": weir.CounterKey, "observe": weir.Sample}
        if name in kinds:
            return getattr(counters, name)(*(kinds[name](**c) for c in step["counters"])) or []
        options = {key: step[key] for key in ("group", "window", "zone", "distinct", "n") if key in step}
        got = getattr(counters, name)(*step["names"], **options)
        if name == "history":
            self.assertEqual(got[0][-1].start is not None, "window" in step)
            return [len(got[0]), sum(point.value for point in got[0])]
        if name == "distributions":
            m = got[0].merged
            return [len(got[0].points), m.count, m.sum, m.mean, m.min, m.max, m.p50, m.p95, m.p99]
        return got

    def run_case(self, client, steps):
        hold = None
        for i, step in enumerate(steps, 1):
            request = weir.Request(**step.get("request", {}))
            ttl = step.get("ttl_minutes", 0) * 60

            def call():
                nonlocal hold
                name = step["call"]
                if name == "reserve":
                    hold, verdict = client.reserve(request, ttl=ttl)
                    self.assertEqual(hold.id != "", hold.expires_at is not None)
                    return verdict
                if name == "hold":
                    hold = client.hold(step["hold"])
                    return hold
                if name == "settle":
                    return hold.settle(step["used"])
                if name == "cancel":
                    return hold.cancel()
                if name == "extend":
                    return hold.extend(ttl)
                return getattr(client, name)(request)

            if "error" in step:
                with self.assertRaises(ERRORS[step["error"]], msg=f"step {i}"):
                    call()
            else:
                self.assert_within(step["want"], call(), f"step {i}")

    def assert_within(self, want, got, where):
        if isinstance(want, list):
            self.assertEqual(len(got), len(want), where)
            for i, each in enumerate(want):
                self.assert_within(each, got[i], f"{where}[{i}]")
        elif isinstance(want, dict):
            for name, value in want.items():
                self.assert_within(value, _field(got, name), f"{where}.{name}")
        else:
            self.assertEqual(got, want, where)


class AsyncCases(Cases):
    Client, name = Blocking, "asyncio"


def _field(got, name):
    if name.endswith("_minutes"):
        return math.ceil(getattr(got, name[: -len("_minutes")]) / 60)
    if name in ("pending", "open"):
        return got.state == name
    return getattr(got, name)
