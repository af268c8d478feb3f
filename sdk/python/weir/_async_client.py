"""The client for asyncio."""

from __future__ import annotations

from datetime import datetime
from typing import Mapping, Optional, Tuple, TypeVar, Union

from ._api import Request, Settled
from ._async_transport import AsyncPool
from ._breaker import Breaker, NoBreaker
from ._calls import Call, Caller, asking, cancelling, extending, milliseconds, settling
from ._counters import AsyncCounters
from ._errors import Unavailable
from ._fallback import Verdict

R = TypeVar("R")


class AsyncClient(Caller):
    """Asks a weir service from coroutines. Its options, answers and errors are those of Client.

    Many tasks can share one; all of them must run in one event loop. The timeout includes the lookup
    of the host name. If a call is cancelled, weir may have charged it. Create the client anywhere, and
    close it with await client.close(), or use async with.
    """

    def _open(self) -> None:
        self._pool = AsyncPool(self._host, self._port, self._tls)
        self.counters = AsyncCounters(self._call)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections that are not in use. Later calls raise Closed."""
        self._closed = True
        await self._pool.close()

    async def check(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Asks whether a request is allowed, and charges it."""
        return await self._one(asking("/v1/check", request, {}), request, timeout)

    async def peek(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Returns the answer that check would return, and charges nothing."""
        return await self._one(asking("/v1/check", request, {"peek": True}), request, timeout, charge=False)

    async def charge(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Charges the cost of a request even if it does not fit; see Client.charge."""
        return await self._one(asking("/v1/check", request, {"charge": "always"}), request, timeout)

    async def reserve(self, request: Request, *, ttl: float = 0, timeout: Optional[float] = None) -> Tuple[AsyncHold, Verdict]:
        """Asks whether a request is allowed, and charges its cost as an estimate; see Client.reserve."""
        verdict = await self._one(asking("/v1/reserve", request, milliseconds(ttl)), request, timeout)
        return self.hold(verdict.hold, verdict.hold_expires_at), verdict

    def hold(self, id: str, expires_at: Optional[datetime] = None) -> AsyncHold:
        """Returns the hold with an id, which another process may have reserved."""
        return AsyncHold(self, id, expires_at)

    async def _one(self, call: Call[Verdict], request: Request, timeout: Optional[float], charge: bool = True) -> Verdict:
        try:
            return await self._call(call, timeout, self._breaker)
        except Unavailable as error:
            return self._fallback.answer(error, request, charge)

    async def _call(self, call: Call[R], timeout: Optional[float], breaker: Union[Breaker, NoBreaker] = NoBreaker()) -> R:
        body = call.body()
        with self._calling(breaker):
            left = self._timeout if timeout is None else timeout
            return call.result(*await self._pool.send(self._path + call.path, self._headers, body, left))


class AsyncHold:
    """A charge that ends later, as a Hold.

    If its id is empty, nothing was charged, and its methods do nothing.
    """

    def __init__(self, client: AsyncClient, id: str, expires_at: Optional[datetime]) -> None:
        self._client = client
        self.id = id
        self.expires_at = expires_at  # by the clock of weir's store; None if it is not known

    async def settle(self, used: Union[int, Mapping[str, int]], *, timeout: Optional[float] = None) -> Settled:
        """Ends the hold with the units that were used; see Hold.settle."""
        return await self._end(settling(self.id, used), timeout)

    async def cancel(self, *, timeout: Optional[float] = None) -> Settled:
        """Ends the hold as if nothing was used."""
        return await self._end(cancelling(self.id), timeout)

    async def extend(self, ttl: float = 0, *, timeout: Optional[float] = None) -> Settled:
        """Lets the hold expire after ttl from now on; 0 is one minute."""
        return await self._end(extending(self.id, ttl), timeout)

    async def _end(self, call: Call[Settled], timeout: Optional[float]) -> Settled:
        if not self.id:
            return Settled(state="settled")
        return await self._client._call(call, timeout, self._client._breaker)
