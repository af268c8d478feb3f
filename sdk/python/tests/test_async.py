"""What only the client for asyncio does: cancellation, event loops, and HTTP by itself."""

import asyncio
import gc
import json
import socket
import threading
import unittest
import warnings

import weir

from . import support


class AsyncCalls(unittest.TestCase):
    def test_cancelled_calls_leave_nothing_behind(self):
        came, ends = threading.Semaphore(0), []

        def answer(handler):
            if handler.path != "/v1/check":
                return support.reply(handler, {"counters": []})
            came.release()
            ends.append(handler.connection.recv(1))  # until the client hangs up

        async def cancel():
            async with weir.AsyncClient(support.serve(self, answer), timeout=600, max_in_flight=1, logger=support.QUIET) as client:
                for _ in range(5):  # more than a breaker would bear
                    task = asyncio.ensure_future(client.check(weir.Request(user="alice")))
                    await asyncio.get_running_loop().run_in_executor(None, came.acquire)
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                self.assertEqual(await client.counters.get("a"), [])
                self.assertEqual(len(asyncio.all_tasks()), 1)

        asyncio.run(cancel())
        support.until(lambda: ends == [b""] * 5)

    def test_a_client_outlives_a_loop(self):
        client = weir.AsyncClient(support.URL, timeout=30)

        async def ask(close=False):
            verdict = await client.check(weir.Request(user="asgi-loops", path="/api/x"))
            if close:
                await client.close()
            return verdict.degraded

        self.assertFalse(asyncio.run(ask()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the connection of the first loop
            self.assertFalse(asyncio.run(ask(close=True)))
            gc.collect()

    def test_answers_in_every_form(self):
        good = json.dumps({"counters": [{"name": "a", "value": 7}]}).encode()
        chunks = b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in (good[:10], good[10:])) + b"0\r\nX: y\r\n\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(good)
        forms = {
            "length": (b"HTTP/1.1 200 OK\r\n" + length + good, True),
            "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, True),
            "informational": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n" + length + good, True),
            "until the end": (b"HTTP/1.1 200 OK\r\n\r\n" + good, False),
            "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n" + length + good, False),
            "close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + length + good, False),
            "more than asked for": (b"HTTP/1.1 200 OK\r\n" + length + good + b"HTTP/1.1 200 OK\r\n", False),
        }
        for name, (form, again) in forms.items():
            ports = []

            def answer(handler):
                ports.append(handler.client_address[1])
                handler.wfile.write(form)
                handler.close_connection = name in ("until the end", "HTTP/1.0")

            async def ask():
                async with weir.AsyncClient(support.serve(self, answer), timeout=30) as client:
                    for _ in range(2):
                        self.assertEqual(await client.counters.get("a"), [7], name)

            asyncio.run(ask())
            self.assertEqual(len(set(ports)), 1 if again else 2, name)

    def test_wrong_forms(self):
        head = b"HTTP/1.1 200 OK\r\n"
        for form, why in {
            b"SSH-2.0-OpenSSH\r\n\r\n": "not HTTP",
            head + b"Content-Length: -1\r\n\r\n": "invalid length",
            head + b"Content-Length: 99999999\r\n\r\n": "more than 1048576 bytes",
            head + b"Transfer-Encoding: gzip\r\n\r\n": "unknown transfer coding",
            head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n": "invalid length",
            head + b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n": "more than 1048576 bytes",
            head + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n": "wrong length",
            head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 200: "too many trailers",
            head + b"X: " + b"x" * 200_000 + b"\r\n\r\n": "head of the answer has more than 65536 bytes",
            head + b"Content-Length: 5\r\n\r\nabc": "before its answer was complete",
        }.items():

            def answer(handler):
                handler.wfile.write(form)
                handler.connection.shutdown(socket.SHUT_WR)
                handler.close_connection = True

            async def ask():
                async with weir.AsyncClient(support.serve(self, answer), timeout=30) as client:
                    with self.assertRaisesRegex(weir.Unavailable, why):
                        await client.counters.get("a")

            asyncio.run(ask())
