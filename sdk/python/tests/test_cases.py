"""The client answers as the table that all clients share says."""

import math
import unittest

import weir

from . import support

ERRORS = {"invalid": weir.Invalid, "hold-unknown": weir.HoldUnknown, "hold-expired": weir.HoldExpired}


class Cases(unittest.TestCase):
    def test_cases(self):
        with weir.Client(support.URL, timeout=30) as client:
            for case in support.cases("python")["checks"]:
                with self.subTest(case["name"]):
                    self.run_case(client, case["steps"])

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


def _field(got, name):
    if name.endswith("_minutes"):
        return math.ceil(getattr(got, name[: -len("_minutes")]) / 60)
    if name in ("pending", "open"):
        return got.state == name
    return getattr(got, name)
