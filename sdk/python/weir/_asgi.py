"""The middleware for ASGI 3: Starlette, FastAPI, Django, and others."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Awaitable, Callable, Dict, List, MutableMapping, Optional, Tuple, Union
from urllib.parse import quote

from ._api import Request
from ._async_client import AsyncClient
from ._errors import Invalid
from ._fallback import Verdict
from ._headers import Denial, headers_of, invalid
from ._middleware import PATH_CHARACTERS, denied, merge, too_many_delayed

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ASGILimit:
    """Limits the requests of an ASGI application by a weir service.

    A WebSocket is limited when it connects. What is neither HTTP nor a WebSocket, such as lifespan,
    passes. Bodies pass as they come.

    request      returns what your program knows about a request, such as Request(user=...), or a
                 coroutine that does. Return only what you have verified, not what the client claims.
                 The address of the client is that of scope["client"]. Fields that are empty keep the
                 default: address, method, host and path
    skip         whether a request passes without a check
    deny         changes the answer to a denied request
    headers      whether responses get the headers about limits
    max_delayed  the maximum number of requests that are delayed at the same time; further requests
                 get 503
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        client: AsyncClient,
        *,
        request: Optional[Callable[[Scope], Union[Request, Awaitable[Request]]]] = None,
        skip: Optional[Callable[[Scope], bool]] = None,
        deny: Optional[Callable[[Denial, Verdict, Scope], Denial]] = None,
        headers: bool = True,
        max_delayed: int = 1000,
    ) -> None:
        self._app, self._client = app, client
        self._request, self._skip, self._deny = request, skip, deny
        self._headers = headers
        self._max_delayed, self._delayed = max_delayed, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._skip and self._skip(scope):
            return await self._app(scope, receive, send)
        try:
            verdict = await self._client.check(await self._describe(scope))
        except Invalid:
            return await _answer(invalid(), scope, receive, send)
        if verdict.allowed and verdict.delay > 0:
            await self._delay(verdict)
        if not verdict.allowed:
            denial = denied(verdict, self._headers)
            return await _answer(self._deny(denial, verdict, scope) if self._deny else denial, scope, receive, send)
        await self._app(scope, receive, _adding(headers_of(verdict), send) if self._headers else send)

    async def _describe(self, scope: Scope) -> Request:
        """What a request certainly is, and what the program knows about it."""
        raw: Union[bytes, str, None] = scope.get("raw_path")  # as it was sent; not every server has it
        if isinstance(raw, str):
            raw = raw.encode("latin-1")  # uvicorn 0.17 has a str for WebSockets
        sent = quote(raw.partition(b"?")[0], safe=PATH_CHARACTERS + "%") if raw else quote(scope["path"], PATH_CHARACTERS, errors="replace")
        request = Request(
            ip=(scope.get("client") or ("127.0.0.1",))[0].partition("%")[0],  # a Unix socket has no address
            method=scope.get("method", "GET"),  # a WebSocket begins with GET
            host=next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"), ""),
            path=sent if sent.startswith("/") else "",
        )
        if self._request:
            known = self._request(scope)
            merge(request, await known if inspect.isawaitable(known) else known)
        return request

    async def _delay(self, verdict: Verdict) -> None:
        """Lets a request wait for its turn."""
        if self._delayed >= self._max_delayed:
            return too_many_delayed(verdict)
        self._delayed += 1
        try:
            await asyncio.sleep(verdict.delay)
        finally:
            self._delayed -= 1


def _adding(more: Dict[str, str], send: Send) -> Send:
    """Adds headers to a response, or to the acceptance of a WebSocket."""

    async def adding(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.accept"):
            headers = list(message.get("headers") or [])
            names = {bytes(name).lower() for name, _ in headers}  # the application has the last word
            message = {**message, "headers": headers + [h for h in _encoded(more) if h[0] not in names]}
        await send(message)

    return adding


def _encoded(headers: Dict[str, str]) -> List[Tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _answer(denial: Denial, scope: Scope, receive: Receive, send: Send) -> None:
    kind = "http.response"
    if scope["type"] == "websocket":
        await receive()  # websocket.connect
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            return await send({"type": "websocket.close", "code": 1008})  # which a server answers with 403
        kind = "websocket.http.response"
    headers = _encoded({**denial.headers, "Content-Length": str(len(denial.body))})
    await send({"type": f"{kind}.start", "status": denial.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": b"" if scope.get("method") == "HEAD" else denial.body})
