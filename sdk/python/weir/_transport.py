"""Sends calls over connections that are used again."""

from __future__ import annotations

import http.client
import io
import os
import select
import socket
import ssl
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

# How many bytes of an answer are read.
MAX_ANSWER = 1 << 20


class _Socket:
    """A socket whose every operation ends by the deadline of its connection."""

    def __init__(self, raw: socket.socket, connection: Connection) -> None:
        self.raw, self._connection = raw, connection

    def sendall(self, data: bytes) -> None:
        self.raw.settimeout(self._connection.remaining())
        self.raw.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self.raw.makefile("rb", buffering=0), self.raw, self._connection))

    def close(self) -> None:
        self.raw.close()


class _Reader(io.RawIOBase):
    """What a socket receives. Without it, a server that sends a byte now and then could take any time."""

    def __init__(self, file: io.RawIOBase, raw: socket.socket, connection: Connection) -> None:
        self._file, self._raw, self._connection = file, raw, connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._raw.settimeout(self._connection.remaining())
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def is_readable(raw: Any) -> bool:
    """Whether a socket has received something, or was closed."""
    poll = select.poll() if hasattr(select, "poll") else None
    if poll is None:  # Windows
        return bool(select.select([raw], [], [], 0)[0])
    poll.register(raw, select.POLLIN)
    return bool(poll.poll(0))


class Connection(http.client.HTTPConnection):
    """A connection with a deadline for all that happens on it."""

    def __init__(self, host: str, port: int, tls: Optional[ssl.SSLContext]) -> None:
        super().__init__(host, port)
        self.default_port = 443 if tls else 80  # http.client leaves it out of Host
        self._tls = tls
        self.deadline = 0.0

    def remaining(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def connect(self) -> None:
        error: Exception = OSError("the name has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            raw = socket.socket(family, kind, protocol)
            try:
                raw.settimeout(self.remaining())
                raw.connect(address)
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls:
                    raw.settimeout(self.remaining())
                    raw = self._tls.wrap_socket(raw, server_hostname=self.host)
                wrapped: Any = _Socket(raw, self)
                self.sock = wrapped
                return
            except OSError as e:
                raw.close()
                error = e
        raise error

    def is_stale(self) -> bool:
        """Whether the server has closed the connection, or sent what nobody asked for."""
        held: Any = self.sock
        return held is None or is_readable(held.raw)


class Pool:
    """Connections to one server. There are never more than calls in flight."""

    def __init__(self, host: str, port: int, tls: Optional[ssl.SSLContext]) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._lock = threading.Lock()
        self._idle: List[Connection] = []
        self._process = os.getpid()

    def send(self, path: str, headers: Dict[str, str], body: Optional[bytes], timeout: float) -> Tuple[int, bytes]:
        """Makes one call, and never a second one, because both could be charged. Without a body, it is a GET."""
        deadline = time.monotonic() + timeout
        connection = self._take()
        connection.deadline = deadline
        whole = False
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            with connection.getresponse() as response:
                length = MAX_ANSWER + 1 if response.length is None else response.length
                answer = b"" if length > MAX_ANSWER + 1 else response.read(length)
                if length > MAX_ANSWER + 1 or len(answer) > MAX_ANSWER:
                    raise ValueError(f"the answer has more than {MAX_ANSWER} bytes")
                whole = response.isclosed() and not response.will_close
                return response.status, answer
        finally:
            if whole:
                self._put(connection)
            else:
                connection.close()

    def _take(self) -> Connection:
        while True:
            with self._lock:
                if self._process != os.getpid():  # the connections are those of the parent
                    self._idle, self._process = [], os.getpid()
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return Connection(self._host, self._port, self._tls)
            if not connection.is_stale():
                return connection
            connection.close()

    def _put(self, connection: Connection) -> None:
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
