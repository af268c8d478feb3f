"""Counters."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Callable, Dict, List, Optional, Sequence
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
        answer = self._call("/v1/counters/add", {"add": [_message(d) for d in deltas]}, CountersAnswer, timeout)
        return [c.value for c in answer.counters]

    def set(self, *settings: CounterSetting, timeout: Optional[float] = None) -> List[float]:
        """Gives counters new values, all or none. Returns the previous values.

        A repeated call changes nothing more.
        """
        answer = self._call("/v1/counters/set", {"set": [_message(s) for s in settings]}, SetAnswer, timeout)
        return [c.previous for c in answer.counters]

    def reset(self, *keys: CounterKey, timeout: Optional[float] = None) -> List[float]:
        """Sets counters to 0, and returns the previous values."""
        answer = self._call("/v1/counters/reset", {"reset": [_message(k) for k in keys]}, CountersAnswer, timeout)
        return [c.value for c in answer.counters]

    def get(
        self, *names: str, group: str = "", window: str = "", zone: str = "", distinct: bool = False, timeout: Optional[float] = None
    ) -> List[float]:
        """Returns the values of counters. A new counter has 0."""
        query = _query(names, group=group, window=window, zone=zone, distinct=distinct)
        return [c.value for c in self._call("/v1/counters" + query, None, CountersAnswer, timeout).counters]

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
        query = _query(names, group=group, window=window, zone=zone, distinct=distinct, n=n)
        return [c.points for c in self._call("/v1/counters/history" + query, None, CounterHistoryAnswer, timeout).counters]

    def observe(self, *samples: Sample, timeout: Optional[float] = None) -> None:
        """Adds values to distributions, such as response times."""
        self._call("/v1/distributions/observe", {"observe": [_message(s) for s in samples]}, ObserveAnswer, timeout)

    def distributions(
        self, *names: str, n: int = 0, group: str = "", window: str = "", zone: str = "", timeout: Optional[float] = None
    ) -> List[Distribution]:
        """Returns the percentiles of the last n windows of distributions, and of these windows together."""
        query = _query(names, group=group, window=window, zone=zone, n=n)
        distributions: List[Distribution] = self._call("/v1/distributions" + query, None, DistributionsAnswer, timeout).distributions
        return distributions


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


def _query(names: Sequence[str], **options: Any) -> str:
    given = [(name, "true" if value is True else value) for name, value in options.items() if value]
    return "?" + urlencode([("name", name) for name in names] + given)
