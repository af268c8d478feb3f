"""Counters."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Type, TypeVar
from urllib.parse import urlencode

from ._api import (
    CounterDelta,
    CounterHistoryAnswer,
    CounterKey,
    CounterPoint,
    CountersAnswer,
    CounterSetting,
    Distribution,
    DistributionsAnswer,
    ObserveAnswer,
    Sample,
    SetAnswer,
)
from ._calls import Call
from ._decode import decode

A = TypeVar("A")
R = TypeVar("R")


class Counters:
    """Counts in weir.

    Answers have the order of what was asked. An amount is a number with at most six decimals; what
    is sent is rounded to them.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def add(self, *deltas: CounterDelta, timeout: Optional[float] = None) -> List[float]:
        """Adds to counters, 1 by default, or members to distinct ones. All are changed, or none.

        Returns the new values.
        """
        return _run(self._call, _adding(deltas), timeout)

    def set(self, *settings: CounterSetting, timeout: Optional[float] = None) -> List[float]:
        """Gives counters new values, all or none. Returns the previous values.

        A repeated call changes nothing more.
        """
        return _run(self._call, _setting(settings), timeout)

    def reset(self, *keys: CounterKey, timeout: Optional[float] = None) -> List[float]:
        """Sets counters to 0, and returns the previous values."""
        return _run(self._call, _resetting(keys), timeout)

    def get(
        self, *names: str, group: str = "", window: str = "", zone: str = "", distinct: bool = False, timeout: Optional[float] = None
    ) -> List[float]:
        """Returns the values of counters. A new counter has 0."""
        return _run(self._call, _getting(names, group=group, window=window, zone=zone, distinct=distinct), timeout)

    def history(
        self,
        *names: str,
        n: int = 0,
        group: str = "",
        window: str = "",
        zone: str = "",
        distinct: bool = False,
        timeout: Optional[float] = None,
    ) -> List[List[CounterPoint]]:
        """Returns the last n windows of counters, earliest first; 10 by default."""
        return _run(self._call, _looking_back(names, group=group, window=window, zone=zone, distinct=distinct, n=n), timeout)

    def observe(self, *samples: Sample, timeout: Optional[float] = None) -> None:
        """Adds values to distributions, such as response times."""
        _run(self._call, _observing(samples), timeout)

    def distributions(
        self, *names: str, n: int = 0, group: str = "", window: str = "", zone: str = "", timeout: Optional[float] = None
    ) -> List[Distribution]:
        """Returns the percentiles of the last n windows of distributions, and of these windows together."""
        return _run(self._call, _distributing(names, group=group, window=window, zone=zone, n=n), timeout)


class AsyncCounters:
    """Counts in weir, as Counters does."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call

    async def add(self, *deltas: CounterDelta, timeout: Optional[float] = None) -> List[float]:
        """Adds to counters; see Counters.add."""
        return await _wait(self._call, _adding(deltas), timeout)

    async def set(self, *settings: CounterSetting, timeout: Optional[float] = None) -> List[float]:
        """Gives counters new values; see Counters.set."""
        return await _wait(self._call, _setting(settings), timeout)

    async def reset(self, *keys: CounterKey, timeout: Optional[float] = None) -> List[float]:
        """Sets counters to 0, and returns the previous values."""
        return await _wait(self._call, _resetting(keys), timeout)

    async def get(
        self, *names: str, group: str = "", window: str = "", zone: str = "", distinct: bool = False, timeout: Optional[float] = None
    ) -> List[float]:
        """Returns the values of counters. A new counter has 0."""
        return await _wait(self._call, _getting(names, group=group, window=window, zone=zone, distinct=distinct), timeout)

    async def history(
        self,
        *names: str,
        n: int = 0,
        group: str = "",
        window: str = "",
        zone: str = "",
        distinct: bool = False,
        timeout: Optional[float] = None,
    ) -> List[List[CounterPoint]]:
        """Returns the last n windows of counters, earliest first; 10 by default."""
        return await _wait(self._call, _looking_back(names, group=group, window=window, zone=zone, distinct=distinct, n=n), timeout)

    async def observe(self, *samples: Sample, timeout: Optional[float] = None) -> None:
        """Adds values to distributions, such as response times."""
        await _wait(self._call, _observing(samples), timeout)

    async def distributions(
        self, *names: str, n: int = 0, group: str = "", window: str = "", zone: str = "", timeout: Optional[float] = None
    ) -> List[Distribution]:
        """Returns percentiles; see Counters.distributions."""
        return await _wait(self._call, _distributing(names, group=group, window=window, zone=zone, n=n), timeout)


def _run(call: Callable[..., Any], what: Call[R], timeout: Optional[float]) -> R:
    result: R = call(what, timeout)
    return result


async def _wait(call: Callable[..., Awaitable[Any]], what: Call[R], timeout: Optional[float]) -> R:
    result: R = await call(what, timeout)
    return result


def _adding(deltas: Sequence[CounterDelta]) -> Call[List[float]]:
    return _sending("/v1/counters/add", "add", deltas, CountersAnswer, _values)


def _setting(settings: Sequence[CounterSetting]) -> Call[List[float]]:
    return _sending("/v1/counters/set", "set", settings, SetAnswer, lambda answer: [c.previous for c in answer.counters])


def _resetting(keys: Sequence[CounterKey]) -> Call[List[float]]:
    return _sending("/v1/counters/reset", "reset", keys, CountersAnswer, _values)


def _getting(names: Sequence[str], **options: Any) -> Call[List[float]]:
    return _asking("/v1/counters", names, options, CountersAnswer, _values)


def _looking_back(names: Sequence[str], **options: Any) -> Call[List[List[CounterPoint]]]:
    return _asking("/v1/counters/history", names, options, CounterHistoryAnswer, lambda answer: [c.points for c in answer.counters])


def _observing(samples: Sequence[Sample]) -> Call[ObserveAnswer]:
    return _sending("/v1/distributions/observe", "observe", samples, ObserveAnswer, lambda answer: answer)


def _distributing(names: Sequence[str], **options: Any) -> Call[List[Distribution]]:
    return _asking("/v1/distributions", names, options, DistributionsAnswer, lambda answer: answer.distributions)


def _values(answer: CountersAnswer) -> List[float]:
    return [c.value for c in answer.counters]


def _sending(path: str, name: str, what: Sequence[Any], kind: Type[A], pick: Callable[[A], R]) -> Call[R]:
    return Call(path, {name: [_message(each) for each in what]}, lambda answer: pick(decode(kind, answer)))


def _asking(path: str, names: Sequence[str], options: Dict[str, Any], kind: Type[A], pick: Callable[[A], R]) -> Call[R]:
    given = [(name, "true" if value is True else value) for name, value in options.items() if value]
    query = urlencode([("name", name) for name in names] + given)
    return Call(f"{path}?{query}", None, lambda answer: pick(decode(kind, answer)))


def _message(of: Any) -> Dict[str, Any]:
    """An object as it goes over the wire. Fields that are empty are left out, but not a 0."""
    message = {}
    for f in fields(of):
        value = getattr(of, f.name)
        if isinstance(value, float):
            value = round(value, 6)
        if value is not None and value != "" and value is not False and value != []:
            message[f.name] = value
    return message
