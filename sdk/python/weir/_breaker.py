"""Keeps calls from a service that is unavailable."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Optional

from ._errors import Unavailable

_MAX_FAILURES = 3  # in a row, before the breaker opens
_BETWEEN = 0.5  # seconds without a call while it is open, more or less: many clients shall not come at once


class Breaker:
    """While it is open, one call from time to time tries the service, and the others do not wait.

    There is no probe in the background, because a server that forks would lose its thread.
    """

    def __init__(self, url: str, logger: logging.Logger) -> None:
        self._url, self._logger = url, logger
        self._lock = threading.Lock()
        self._failures = 0  # in a row
        self._next = 0.0  # when to try again, if it is open
        self._why: Optional[Unavailable] = None

    def enter(self) -> None:
        """Raises why the service is not asked just now."""
        with self._lock:
            if self._failures < _MAX_FAILURES or self._why is None:
                return
            if time.monotonic() < self._next:
                raise Unavailable(*self._why.args)
            self._wait()

    def succeeded(self) -> None:
        with self._lock:
            was_open, self._failures = self._failures >= _MAX_FAILURES, 0
        if was_open:
            self._logger.info("weir is available again: %s", self._url)

    def failed(self, why: Unavailable) -> None:
        with self._lock:
            self._failures += 1
            self._why = why
            opens = self._failures == _MAX_FAILURES
            if opens:
                self._wait()
        if opens:
            self._logger.warning("weir is unavailable; requests are answered without it: %s: %s", self._url, why)

    def _wait(self) -> None:
        self._next = time.monotonic() + _BETWEEN * (0.75 + random.random() / 2)


class NoBreaker:
    """Stands for a breaker where calls are always made."""

    def enter(self) -> None: ...

    def succeeded(self) -> None: ...

    def failed(self, why: Exception) -> None: ...
