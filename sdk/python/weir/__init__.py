"""A client for weir, an API rate limiter. It needs only the standard library.

    client = weir.Client("http://127.0.0.1:8080")
    verdict = client.check(weir.Request(user="alice", path="/api/items"))
    if not verdict.allowed:
        ...  # 429, and verdict.retry_after

AsyncClient has the same methods for coroutines. WSGILimit and ASGILimit are middleware.
All durations are in seconds.
"""

from ._api import (
    CounterDelta,
    CounterKey,
    CounterPoint,
    CounterSetting,
    Distribution,
    Override,
    Part,
    Percentiles,
    Request,
    Result,
    Sample,
    Settled,
)
from ._asgi import ASGILimit
from ._async_client import AsyncClient, AsyncHold
from ._client import Client, Hold
from ._counters import AsyncCounters, Counters
from ._errors import Closed, CountersFull, HoldExpired, HoldUnknown, Invalid, OutOfRange, Unauthorized, Unavailable, WeirError
from ._fallback import LocalLimit, Verdict
from ._headers import Denial, denial_of, headers_of
from ._wsgi import WSGILimit

__all__ = [
    "ASGILimit",
    "AsyncClient",
    "AsyncCounters",
    "AsyncHold",
    "Client",
    "Closed",
    "CounterDelta",
    "CounterKey",
    "CounterPoint",
    "CounterSetting",
    "Counters",
    "CountersFull",
    "Denial",
    "Distribution",
    "Hold",
    "HoldExpired",
    "HoldUnknown",
    "Invalid",
    "LocalLimit",
    "OutOfRange",
    "Override",
    "Part",
    "Percentiles",
    "Request",
    "Result",
    "Sample",
    "Settled",
    "Unauthorized",
    "Unavailable",
    "Verdict",
    "WSGILimit",
    "WeirError",
    "denial_of",
    "headers_of",
]
