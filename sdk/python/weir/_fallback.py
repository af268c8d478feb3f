"""Answers while weir is unavailable."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import Dict, Optional

from ._api import Answer, Request, Result

# When to come back while weir is unavailable: a restart takes some seconds.
_OUTAGE = 5.0

# How many characters a client may have to be counted by itself: keys are kept, and clients choose them.
_MAX_KEY = 1024


@dataclass
class Verdict(Answer):
    """The answer to a request.

    Its numbers come from one limit: for an allowed request the one with the fewest units left, for
    a denied request the first in the document that denies.
    """

    error: Optional[Exception] = None  # why weir is unavailable, if degraded is true because of that


@dataclass(frozen=True)
class LocalLimit:
    """The limit while weir is unavailable: limit requests per period for each client, in a fixed window."""

    limit: int  # requests per period, whatever they cost
    period: float  # in seconds
    max_keys: int = 10_000  # clients that are counted by themselves; further clients share one count

    def __post_init__(self) -> None:
        if not (self.limit > 0 and self.period > 0 and self.max_keys > 0):
            raise ValueError("weir: limit, period and max_keys of a LocalLimit must be positive")


class Fallback:
    """Decides without weir."""

    def __init__(self, on_failure: str, local: Optional[LocalLimit]) -> None:
        self._closed = on_failure == "closed"
        self._window = _Window(local) if on_failure == "local" and local else None

    def answer(self, error: Exception, request: Request, charge: bool) -> Verdict:
        """Decides a request, and counts it if it is to be charged."""
        verdict = Verdict(allowed=True, reason="unavailable", degraded=True, error=error)
        if self._window:
            self._window.decide(verdict, request, charge)
        elif self._closed:
            verdict.allowed, verdict.status, verdict.retry_after = False, 503, _OUTAGE
            verdict.message = "The rate limiter is unavailable; try again soon."
        return verdict


class _Window:
    """A fixed window in this process.

    All clients have the same window, so that the counts are dropped at once when it ends, and what
    they take is bounded without a search.
    """

    def __init__(self, local: LocalLimit) -> None:
        self._local = local
        self._policy = f"{local.limit}/{_period(local.period)}"
        self._lock = threading.Lock()
        self._counts: Dict[str, int] = {}
        self._end = 0.0

    def decide(self, verdict: Verdict, request: Request, charge: bool) -> None:
        local, key = self._local, _key(request)
        with self._lock:
            now = time.monotonic()
            if now >= self._end:
                self._counts.clear()
                self._end = now + local.period
            if len(key) > _MAX_KEY or key not in self._counts and len(self._counts) >= local.max_keys:
                key = ""  # with all others that do not fit
            used = self._counts.get(key, 0)
            allowed = used < local.limit
            if charge and allowed:
                self._counts[key] = used + 1
            left = self._end - now
        r = Result(rule="local", key=key, algorithm="fixed_window", policy=self._policy, allowed=allowed, asked=True, local=True, cost=1)
        r.limit, r.remaining = local.limit, max(0, local.limit - used - (allowed and charge))
        r.reset_at, r.reset_after, r.retry_after = math.ceil(time.time() + left), left, 0.0 if allowed else left
        verdict.allowed, verdict.reason, verdict.rule, verdict.results = allowed, "limits", r.rule, [r]
        verdict.limit, verdict.remaining = r.limit, r.remaining
        verdict.reset_at, verdict.reset_after, verdict.retry_after = r.reset_at, r.reset_after, r.retry_after
        if not allowed:
            verdict.status = 429
            verdict.message = f"The limit local is used up; try again in {math.ceil(left)} s."


def _key(request: Request) -> str:
    """The client of a request, as precisely as it is known."""
    if request.user:
        return f"user:{request.user}"
    if request.api_key:
        return f"api_key:{request.api_key}"
    return f"ip:{request.ip}" if request.ip else ""


def _period(seconds: float) -> str:
    """A length as weir writes it."""
    ms = round(seconds * 1000)
    for length, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")):
        if ms % length == 0:
            return f"{ms // length}{unit}"
    return f"{ms}ms"
