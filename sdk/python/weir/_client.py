"""The client."""

from __future__ import annotations

from datetime import datetime
from typing import Mapping, Optional, Tuple, TypeVar, Union

from ._api import Request, Settled
from ._breaker import Breaker, NoBreaker
from ._calls import Call, Caller, asking, cancelling, extending, milliseconds, settling
from ._counters import Counters
from ._errors import Unavailable
from ._fallback import Verdict
from ._transport import Pool

R = TypeVar("R")


class Client(Caller):
    """Asks a weir service. It is safe for use by many threads; share one in your program.

    An unavailable service is not an error: on_failure decides the answer, which is marked as
    degraded. After three failures in a row the circuit breaker opens: only one call in about half
    a second still tries the service, and the others do not wait.

    The client sends no call twice, because both could be charged. A call that was sent but not
    answered may have been charged. It never uses a proxy, whatever the environment contains.

    url            where weir is, such as http://127.0.0.1:8080
    token          sent with every call; if weir has tokens, checks require one with the right check,
                   charge one with the right charge, and counters one with the right use. Without
                   https it is sent only to this machine
    plain_token    send the token without https to other machines, too, for private networks
    timeout        the maximum duration of a call in seconds, without the lookup of the host name
    on_failure     "open" allows, "closed" denies, "local" applies the limit in local
    max_in_flight  the maximum number of calls, and so of connections; further calls are answered as
                   if weir were unavailable
    tls            how to verify an https service; default the certificates of the system
    logger         told when weir becomes unavailable, and when it is available again

    counters counts in weir. Its failures do not open the circuit breaker, and are always errors.
    """

    def _open(self) -> None:
        self._pool = Pool(self._host, self._port, self._tls)
        self.counters = Counters(self._call)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are not in use. Later calls raise Closed."""
        self._closed = True
        self._pool.close()

    def check(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Asks whether a request is allowed, and charges it."""
        return self._one(asking("/v1/check", request, {}), request, timeout)

    def peek(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Returns the answer that check would return, and charges nothing."""
        return self._one(asking("/v1/check", request, {"peek": True}), request, timeout, charge=False)

    def charge(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Charges the cost of a request even if it does not fit, for work that is done already.

        allowed is whether it fitted. If weir is unavailable, nothing is charged.
        """
        return self._one(asking("/v1/check", request, {"charge": "always"}), request, timeout)

    def reserve(self, request: Request, *, ttl: float = 0, timeout: Optional[float] = None) -> Tuple[Hold, Verdict]:
        """Asks whether a request is allowed, as check does, and charges its cost as an estimate.

        Settle, cancel or extend the hold before ttl has passed; 0 is one minute. If nothing was
        charged, the id of the hold is empty, and its methods do nothing: the request is denied, no
        limit applies to it, or weir is unavailable. It is also empty if the verdict is unheld: what
        was charged then stays.
        """
        verdict = self._one(asking("/v1/reserve", request, milliseconds(ttl)), request, timeout)
        return self.hold(verdict.hold, verdict.hold_expires_at), verdict

    def hold(self, id: str, expires_at: Optional[datetime] = None) -> Hold:
        """Returns the hold with an id, which another process may have reserved."""
        return Hold(self, id, expires_at)

    def _one(self, call: Call[Verdict], request: Request, timeout: Optional[float], charge: bool = True) -> Verdict:
        try:
            return self._call(call, timeout, self._breaker)
        except Unavailable as error:
            return self._fallback.answer(error, request, charge)

    def _call(self, call: Call[R], timeout: Optional[float], breaker: Union[Breaker, NoBreaker] = NoBreaker()) -> R:
        body = call.body()
        with self._calling(breaker):
            left = self._timeout if timeout is None else timeout
            return call.result(*self._pool.send(self._path + call.path, self._headers, body, left))


class Hold:
    """A charge that ends later, when the real cost is known.

    If its id is empty, nothing was charged, and its methods do nothing.
    """

    def __init__(self, client: Client, id: str, expires_at: Optional[datetime]) -> None:
        self._client = client
        self.id = id
        self.expires_at = expires_at  # by the clock of weir's store; None if it is not known

    def settle(self, used: Union[int, Mapping[str, int]], *, timeout: Optional[float] = None) -> Settled:
        """Ends the hold with the units that were used: a number for every rule, or numbers by unit.

        Less than was reserved is refunded; more is charged, even beyond the limit. If the hold has
        ended, the answer is that of the first time.
        """
        return self._end(settling(self.id, used), timeout)

    def cancel(self, *, timeout: Optional[float] = None) -> Settled:
        """Ends the hold as if nothing was used."""
        return self._end(cancelling(self.id), timeout)

    def extend(self, ttl: float = 0, *, timeout: Optional[float] = None) -> Settled:
        """Lets the hold expire after ttl from now on; 0 is one minute."""
        return self._end(extending(self.id, ttl), timeout)

    def _end(self, call: Call[Settled], timeout: Optional[float]) -> Settled:
        if not self.id:
            return Settled(state="settled")
        return self._client._call(call, timeout, self._client._breaker)
