"""What both clients send, and how they read the answers: all but the sending itself."""

from __future__ import annotations

import http.client
import ipaddress
import json
import logging
import re
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, Generic, Iterator, Mapping, Optional, Tuple, Type, TypeVar, Union
from urllib.parse import urlsplit

from ._api import Problem, Request, Settled
from ._breaker import Breaker, NoBreaker
from ._decode import decode
from ._errors import Closed, CountersFull, HoldExpired, HoldUnknown, Invalid, OutOfRange, Unauthorized, Unavailable, WeirError, clip
from ._fallback import Fallback, LocalLimit, Verdict

R = TypeVar("R")

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


@dataclass(frozen=True)
class Call(Generic[R]):
    """A call of the service, with GET if there is no message."""

    path: str
    message: Optional[Dict[str, Any]]
    read: Callable[[Any], R]  # of the answer

    def body(self) -> Optional[bytes]:
        return None if self.message is None else json.dumps(self.message).encode()

    def result(self, status: int, answer: bytes) -> R:
        if status not in (200, 202):
            raise _problem(status, answer)
        return self.read(json.loads(answer))


class Caller:
    """What a client knows: its options, the circuit breaker, and how to answer without weir."""

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
        self._host, self._port, self._path, secure = _parse(url)
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
            _check_token(token, self._host, secure or plain_token)
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self._fallback = Fallback(on_failure, local)
        self._breaker = Breaker(url, logger or logging.getLogger("weir"))
        self._room = threading.BoundedSemaphore(max_in_flight)
        self._closed = False
        self._open()

    def _open(self) -> None:
        """Makes what sends the calls."""
        raise NotImplementedError

    @contextmanager
    def _calling(self, breaker: Union[Breaker, NoBreaker]) -> Iterator[None]:
        """Bounds the calls in flight, and tells the breaker what came of one."""
        if self._closed:
            raise Closed("weir: the client is closed; create another one")
        breaker.enter()
        if not self._room.acquire(blocking=False):
            raise _away("too many calls are in flight; raise max_in_flight, or make fewer calls")
        try:
            yield
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


def asking(path: str, request: Request, more: Dict[str, Any]) -> Call[Verdict]:
    """A call about a request. Fields of the request that are empty are left out."""
    message = {}
    for f in fields(request):
        value = getattr(request, f.name)
        if value:
            message[f.name] = value if isinstance(value, (str, int)) else dict(value)
    return Call(path, {**message, **more}, lambda answer: decode(Verdict, answer))


def settling(hold: str, used: Union[int, Mapping[str, int]]) -> Call[Settled]:
    return _ending("/v1/settle", hold, {"used": used if isinstance(used, int) else dict(used)})


def cancelling(hold: str) -> Call[Settled]:
    return _ending("/v1/cancel", hold, {})


def extending(hold: str, ttl: float) -> Call[Settled]:
    return _ending("/v1/extend", hold, milliseconds(ttl))


def _ending(path: str, hold: str, more: Dict[str, Any]) -> Call[Settled]:
    return Call(path, {"hold": hold, **more}, lambda answer: decode(Settled, answer))


def milliseconds(ttl: float) -> Dict[str, Any]:
    return {"ttl_ms": round(ttl * 1000)}


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
