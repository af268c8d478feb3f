"""The middleware for WSGI (PEP 3333): Flask, Django, and others."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple
from urllib.parse import quote

from ._api import Request
from ._client import Client
from ._errors import Invalid
from ._fallback import Verdict
from ._headers import Denial, headers_of, invalid
from ._middleware import PATH_CHARACTERS, denied, merge, too_many_delayed

Environ = Dict[str, Any]


class WSGILimit:
    """Limits the requests of a WSGI application by a weir service.

    request      returns what your program knows about a request, such as Request(user=...). Return
                 only what you have verified, not what the client claims. The address of the client
                 is that of the connection; behind a proxy that you trust, return ip. Fields that
                 are empty keep the default: address, method, host and path
    skip         whether a request passes without a check
    deny         changes the answer to a denied request
    headers      whether responses get the headers about limits
    max_delayed  the maximum number of requests, and so of threads, that are delayed at the same
                 time; further requests get 503
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        client: Client,
        *,
        request: Optional[Callable[[Environ], Request]] = None,
        skip: Optional[Callable[[Environ], bool]] = None,
        deny: Optional[Callable[[Denial, Verdict, Environ], Denial]] = None,
        headers: bool = True,
        max_delayed: int = 10,
    ) -> None:
        self._app, self._client = app, client
        self._request, self._skip, self._deny = request, skip, deny
        self._headers = headers
        self._room = threading.BoundedSemaphore(max_delayed)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self._skip and self._skip(environ):
            return self._app(environ, start_response)
        try:
            verdict = self._client.check(self._describe(environ))
        except Invalid:
            return _answer(invalid(), environ, start_response)
        if verdict.allowed and verdict.delay > 0:
            self._delay(verdict)
        if not verdict.allowed:
            denial = denied(verdict, self._headers)
            return _answer(self._deny(denial, verdict, environ) if self._deny else denial, environ, start_response)
        if not self._headers:
            return self._app(environ, start_response)
        more = headers_of(verdict)

        def start(status: str, headers: List[Tuple[str, str]], *rest: Any) -> Any:
            names = {name.lower() for name, _ in headers}  # the application has the last word
            return start_response(status, headers + [(n, v) for n, v in more.items() if n.lower() not in names], *rest)

        return self._app(environ, start)

    def _describe(self, environ: Environ) -> Request:
        """What a request certainly is, and what the program knows about it."""
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "") or "/"
        request = Request(
            ip=(environ.get("REMOTE_ADDR") or "127.0.0.1").partition("%")[0],  # a Unix socket has no address
            method=environ.get("REQUEST_METHOD", ""),
            host=environ.get("HTTP_HOST", ""),
            path=quote(path.encode("latin-1"), safe=PATH_CHARACTERS) if path[0] == "/" else "",  # the server has unescaped it
        )
        if self._request:
            merge(request, self._request(environ))
        return request

    def _delay(self, verdict: Verdict) -> None:
        """Lets a request wait for its turn."""
        if not self._room.acquire(blocking=False):
            return too_many_delayed(verdict)
        try:
            time.sleep(verdict.delay)
        finally:
            self._room.release()


def _answer(denial: Denial, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        phrase = HTTPStatus(denial.status).phrase
    except ValueError:
        phrase = "Denied"
    start_response(f"{denial.status} {phrase}", [*denial.headers.items(), ("Content-Length", str(len(denial.body)))])
    return [] if environ.get("REQUEST_METHOD") == "HEAD" else [denial.body]
