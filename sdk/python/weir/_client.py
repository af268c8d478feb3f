"""The client."""

from __future__ import annotations

import http.client
import ipaddress
import json
import logging
import re
import ssl
import threading
from dataclasses import fields
from datetime import datetime
from typing import Any, Dict, Mapping, Optional, Tuple, Type, TypeVar, Union
from urllib.parse import urlsplit

from ._api import Problem, Request, Settled
from ._breaker import Breaker, NoBreaker
from ._counters import Counters
from ._decode import decode
from ._errors import Closed, CountersFull, HoldExpired, HoldUnknown, Invalid, OutOfRange, Unauthorized, Unavailable, WeirError, clip
from ._fallback import Fallback, LocalLimit, Verdict
from ._transport import Pool

T = TypeVar("T")

# The problems of a request, while weir is well.
_MISTAKES: Dict[str, Type[WeirError]] = {
    "urn:weir:problem:bad-body": Invalid,
    "urn:weir:problem:bad-field": Invalid,
    "urn:weir:problem:too-large": Invalid,
    "urn:weir:problem:invalid-request": Invalid,
    "urn:weir:problem:hold-unknown": HoldUnknown,
    "urn:weir:problem:hold-expired": HoldExpired,
    "urn:weir:problem:out-of-range": OutOfRange,
    "urn:weir:problem:counters-full": CountersFull,
    "urn:weir:problem:token-required": Unauthorized,
    "urn:weir:problem:invalid-token": Unauthorized,
    "urn:weir:problem:forbidden": Unauthorized,
}


class Client:
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

    def __init__(
        self,
        url: str,
        *,
        token: Optional[str] = None,
        plain_token: bool = False,
        timeout: float = 0.1,
        on_failure: str = "open",
        local: Optional[LocalLimit] = None,
        max_in_flight: int = 100,
        tls: Optional[ssl.SSLContext] = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        host, port, self._path, secure = _parse(url)
        if not timeout > 0:
            raise ValueError(f"weir: timeout is {timeout}; write a positive number of seconds")
        if on_failure not in ("open", "closed", "local"):
            raise ValueError(f"weir: on_failure is {on_failure!r}; write open, closed or local")
        if on_failure == "local" and local is None:
            raise ValueError('weir: local is required with on_failure="local"; write LocalLimit(limit=100, period=60)')
        if max_in_flight < 1:
            raise ValueError(f"weir: max_in_flight is {max_in_flight}; write a positive number")
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            _check_token(token, host, secure or plain_token)
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout
        self._fallback = Fallback(on_failure, local)
        self._breaker = Breaker(url, logger or logging.getLogger("weir"))
        self._room = threading.BoundedSemaphore(max_in_flight)
        self._pool = Pool(host, port, (tls or ssl.create_default_context()) if secure else None)
        self._closed = False
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
        return self._one("/v1/check", request, {}, timeout)

    def peek(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Returns the answer that check would return, and charges nothing."""
        return self._one("/v1/check", request, {"peek": True}, timeout)

    def charge(self, request: Request, *, timeout: Optional[float] = None) -> Verdict:
        """Charges the cost of a request even if it does not fit, for work that is done already.

        allowed is whether it fitted. If weir is unavailable, nothing is charged.
        """
        return self._one("/v1/check", request, {"charge": "always"}, timeout)

    def reserve(self, request: Request, *, ttl: float = 0, timeout: Optional[float] = None) -> Tuple[Hold, Verdict]:
        """Asks whether a request is allowed, as check does, and charges its cost as an estimate.

        Settle, cancel or extend the hold before ttl has passed; 0 is one minute. If nothing was
        charged, the id of the hold is empty, and its methods do nothing: the request is denied, no
        limit applies to it, or weir is unavailable. It is also empty if the verdict is unheld: what
        was charged then stays.
        """
        verdict = self._one("/v1/reserve", request, {"ttl_ms": round(ttl * 1000)}, timeout)
        return self.hold(verdict.hold, verdict.hold_expires_at), verdict

    def hold(self, id: str, expires_at: Optional[datetime] = None) -> Hold:
        """Returns the hold with an id, which another process may have reserved."""
        return Hold(self, id, expires_at)

    def _one(self, path: str, request: Request, more: Dict[str, Any], timeout: Optional[float]) -> Verdict:
        try:
            return self._ask(path, {**_message(request), **more}, Verdict, timeout)
        except Unavailable as error:
            return self._fallback.answer(error, request, "peek" not in more)

    def _ask(self, path: str, message: Dict[str, Any], kind: Type[T], timeout: Optional[float]) -> T:
        """Calls the service, and tells the breaker what came of it."""
        return self._call(path, message, kind, timeout, self._breaker)

    def _call(
        self,
        path: str,
        message: Optional[Dict[str, Any]],
        kind: Type[T],
        timeout: Optional[float],
        breaker: Union[Breaker, NoBreaker] = NoBreaker(),
    ) -> T:
        """Calls the service, with GET if there is no message."""
        body = None if message is None else json.dumps(message).encode()
        if self._closed:
            raise Closed("weir: the client is closed; create another one")
        breaker.enter()
        if not self._room.acquire(blocking=False):
            raise _away("too many calls are in flight; raise max_in_flight, or make fewer calls")
        try:
            status, answer = self._pool.send(self._path + path, self._headers, body, self._timeout if timeout is None else timeout)
            if status not in (200, 202):
                raise _problem(status, answer)
            result = decode(kind, json.loads(answer))
        except Unavailable as error:
            breaker.failed(error)
            raise
        except WeirError:
            breaker.succeeded()
            raise
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            away = _away(str(error) or type(error).__name__)
            breaker.failed(away)
            raise away from error
        finally:
            self._room.release()
        breaker.succeeded()
        return result


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
        return self._end("/v1/settle", {"used": used if isinstance(used, int) else dict(used)}, timeout)

    def cancel(self, *, timeout: Optional[float] = None) -> Settled:
        """Ends the hold as if nothing was used."""
        return self._end("/v1/cancel", {}, timeout)

    def extend(self, ttl: float = 0, *, timeout: Optional[float] = None) -> Settled:
        """Lets the hold expire after ttl from now on; 0 is one minute."""
        return self._end("/v1/extend", {"ttl_ms": round(ttl * 1000)}, timeout)

    def _end(self, path: str, message: Dict[str, Any], timeout: Optional[float]) -> Settled:
        if not self.id:
            return Settled(state="settled")
        return self._client._ask(path, {"hold": self.id, **message}, Settled, timeout)


def _message(request: Request) -> Dict[str, Any]:
    """The request as it goes over the wire. Fields that are empty are left out."""
    message = {}
    for f in fields(request):
        value = getattr(request, f.name)
        if value:
            message[f.name] = value if isinstance(value, (str, int)) else dict(value)
    return message


def _problem(status: int, answer: bytes) -> WeirError:
    """The error of an answer that is no success."""
    try:
        said = decode(Problem, json.loads(answer))
    except (ValueError, RecursionError):  # somebody else answers
        return _away(f"the answer has the status {status}")
    if said.type in _MISTAKES:
        return _MISTAKES[said.type](f"weir: {clip(said.detail)}")
    return _away(f"the answer has the status {status}: {clip(said.detail)}")


def _away(why: str) -> Unavailable:
    return Unavailable(f"weir: the service is unavailable: {why}")


def _parse(url: str) -> Tuple[str, int, str, bool]:
    """Returns the host, the port, the path before /v1, and whether it is https."""
    try:
        u = urlsplit(url)
        secure, port = u.scheme == "https", u.port
    except ValueError:
        u = None
    if u is None or u.scheme not in ("http", "https") or not u.hostname or "@" in u.netloc or u.query or u.fragment:
        raise ValueError("weir: url must be as http://host:port or https://host, without a user or a query")
    return u.hostname, port or (443 if secure else 80), u.path.rstrip("/"), secure


def _check_token(token: str, host: str, secure: bool) -> None:
    if not re.fullmatch(r"[!-~]+", token):
        raise ValueError("weir: token has characters that are not valid in a header; check for spaces and line ends around it")
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not secure and not local:
        raise ValueError("weir: token would be sent in clear text; use https, or set plain_token in a private network")
