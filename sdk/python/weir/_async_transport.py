"""Sends calls over connections that are used again, in an event loop."""

from __future__ import annotations

import asyncio
import http.client
import io
import ssl
from typing import Any, Dict, List, Optional, Tuple

from ._transport import MAX_ANSWER, is_readable

# How many bytes the head of an answer has at most, and a line between its chunks.
_MAX_HEAD = 64 << 10


class _Protocol(asyncio.StreamReaderProtocol):
    """Notices how much a server sends, and when it hangs up."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.received, self.ended = 0, False

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)

    def eof_received(self) -> bool:
        self.ended = True
        return bool(super().eof_received())

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self.ended = True
        super().connection_lost(exc)


class _Connection:
    """A connection to the service, for one call at a time."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader(limit=_MAX_HEAD)
        self._protocol = _Protocol(self._reader)
        self._read = 0  # how many bytes were read

    async def open(self, host: str, port: int, tls: Optional[ssl.SSLContext]) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: self._protocol, host, port, ssl=tls)
        self._writer = asyncio.StreamWriter(transport, self._protocol, self._reader, loop)

    def is_stale(self) -> bool:
        """Whether the server has closed the connection, or sent what nobody asked for."""
        return self._protocol.ended or self._protocol.received != self._read or is_readable(self._writer.get_extra_info("socket"))

    def close(self) -> None:
        self._writer.close()

    async def closed(self) -> None:
        try:
            await self._writer.wait_closed()
        except OSError:
            pass  # it was lost before

    async def exchange(self, head: bytes, body: bytes) -> Tuple[int, bytes, bool]:
        """Returns the status and the body of the answer, and whether the connection can be used again."""
        self._writer.write(head + body)
        await self._writer.drain()
        status, headers, again = await self._read_head()
        while 100 <= status < 200:  # what it says on the way
            status, headers, again = await self._read_head()
        coding = (headers.get("Transfer-Encoding") or "").lower()
        length = headers.get("Content-Length")
        if status in (204, 304):
            answer = b""
        elif coding == "chunked":
            answer = await self._read_chunks()
        elif coding:
            raise ValueError("the answer has an unknown transfer coding")
        elif length is None:
            answer, again = await self._read_rest(), False
        else:
            answer = await self._exactly(_bounded(int(length) if length.isdecimal() else -1))
        return status, answer, again and not self.is_stale()

    async def _read_head(self) -> Tuple[int, Any, bool]:
        text = io.BytesIO(await self._until(b"\r\n\r\n"))
        version, _, rest = text.readline().rstrip().partition(b" ")
        status = rest[:3]
        if not version.startswith(b"HTTP/1.") or not status.isdigit() or len(status) != 3:
            raise ValueError("the answer is not HTTP")
        headers = http.client.parse_headers(text)
        return int(status), headers, version != b"HTTP/1.0" and "close" not in (headers.get("Connection") or "").lower()

    async def _read_chunks(self) -> bytes:
        answer = bytearray()
        while True:
            size = int((await self._until(b"\r\n")).partition(b";")[0], 16)
            if size == 0:
                break
            _bounded(len(answer) + _bounded(size))
            answer += await self._exactly(size)
            if await self._exactly(2) != b"\r\n":
                raise ValueError("a chunk of the answer has the wrong length")
        for _ in range(100):
            if await self._until(b"\r\n") == b"\r\n":
                return bytes(answer)
        raise ValueError("the answer has too many trailers")

    async def _read_rest(self) -> bytes:
        answer = bytearray()
        while True:
            more = await self._reader.read(_MAX_HEAD)
            if not more:
                return bytes(answer)
            answer += more
            _bounded(len(answer))

    async def _until(self, end: bytes) -> bytes:
        data = await self._reader.readuntil(end)
        self._read += len(data)
        return data

    async def _exactly(self, length: int) -> bytes:
        data = await self._reader.readexactly(length)
        self._read += len(data)
        return data


def _bounded(length: int) -> int:
    if not 0 <= length <= MAX_ANSWER:
        raise ValueError(f"the answer has more than {MAX_ANSWER} bytes" if length > 0 else "the answer has an invalid length")
    return length


class AsyncPool:
    """Connections to one server. There are never more than calls in flight."""

    def __init__(self, host: str, port: int, tls: Optional[ssl.SSLContext]) -> None:
        self._host, self._port, self._tls = host, port, tls
        shown = f"[{host}]" if ":" in host else host
        self._authority = shown if port == (443 if tls else 80) else f"{shown}:{port}"
        self._idle: List[_Connection] = []
        self._loop: Optional[asyncio.AbstractEventLoop] = None  # of the idle connections
        self._closed = False

    async def send(self, path: str, headers: Dict[str, str], body: Optional[bytes], timeout: float) -> Tuple[int, bytes]:
        """Makes one call, and never a second one, because both could be charged. Without a body, it is a GET."""
        # asyncio.wait_for can lose a cancellation before Python 3.12.
        call = asyncio.ensure_future(self._send(path, headers, body))
        call.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may be left to ask
        try:
            await asyncio.wait({call}, timeout=timeout)
            if not call.done():
                raise TimeoutError("timed out")
            return call.result()
        finally:
            call.cancel()

    async def _send(self, path: str, headers: Dict[str, str], body: Optional[bytes]) -> Tuple[int, bytes]:
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([*lines, "", ""]).encode("ascii")
        connection = await self._take()
        again = False
        try:
            status, answer, again = await connection.exchange(head, body or b"")
            return status, answer
        except EOFError:
            raise ConnectionError("the server closed the connection before its answer was complete") from None
        except asyncio.LimitOverrunError:
            raise ValueError(f"the head of the answer has more than {_MAX_HEAD} bytes") from None
        finally:
            if again and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()

    async def _take(self) -> _Connection:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # connections end with their loop
            self._idle, self._loop = [], loop
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_stale():
                return connection
            connection.close()
        connection = _Connection()
        await connection.open(self._host, self._port, self._tls)
        return connection

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        for connection in idle:
            await connection.closed()
