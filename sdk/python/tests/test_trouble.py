"""What the clients do while weir is unavailable, slow, or somebody else."""

import json
import logging
import os
import socket
import ssl
import threading
import time
import unittest

import weir

from . import support
from .blocking import Blocking
from .support import QUIET, reply, serve, start_weir, until

ALICE = weir.Request(user="alice", path="/")
GOOD = {
    "allowed": True, "reason": "limits", "limit": 1, "remaining": 1, "reset_at": 1, "reset_after_ms": 1,
    "retry_after_ms": 0, "delay_ms": 0, "degraded": False, "version": 1, "results": [],
}


def gone():
    """An address where nobody listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


class Outage(unittest.TestCase):
    Client = weir.Client

    def client(self, url, **options):
        client = self.Client(url, **{"timeout": 30, "logger": QUIET, **options})
        self.addCleanup(client.close)
        return client

    def test_weir_ends_and_comes_back(self):
        url, kill = start_weir(self)
        client = self.client(url, on_failure="closed", logger=logging.getLogger("outage"))
        login = weir.Request(user="alice", path="/login")
        with self.assertLogs("outage") as logs:
            self.assertTrue(client.check(login).allowed)
            hold, _ = client.reserve(weir.Request(user="alice", path="/chat", cost={"tokens": 7}))
            kill()
            for _ in range(5):
                v = client.check(login)
                self.assertEqual((v.allowed, v.degraded, v.reason, v.status, v.retry_after), (False, True, "unavailable", 503, 5.0))
                self.assertRegex(str(v.error), "^weir: the service is unavailable: .")
            with self.assertRaises(weir.Unavailable):
                hold.settle(5)
            self.assertEqual(client.reserve(login)[0].id, "")
            start_weir(self, url.partition("//")[2])
            until(lambda: not client.check(login).degraded)
            self.assertEqual(client.peek(login).rule, "login")
            with self.assertRaises(weir.HoldUnknown):  # it was in memory
                hold.settle(5)
        self.assertEqual([r.levelname for r in logs.records], ["WARNING", "INFO"])

    def test_counters_that_fail_are_errors_and_checks_are_made_as_before(self):
        problems = {"503": "store-unavailable", "401": "token-required", "403": "forbidden", "507": "counters-full"}
        asked = []

        def answer(handler):
            asked.append((handler.command, handler.headers["Authorization"]))
            status = handler.path.partition("?name=")[2]
            if status == "200":
                reply(handler, {"counters": [{"name": "a", "value": "1"}]})
            elif status:
                problem = {"type": "urn:weir:problem:" + problems[status], "title": "x", "status": int(status), "detail": "No."}
                reply(handler, problem, int(status))
            else:
                reply(handler, GOOD)

        client = self.client(serve(self, answer), token="secret")
        errors = {"503": weir.Unavailable, "401": weir.Unauthorized, "403": weir.Unauthorized, "507": weir.CountersFull, "200": weir.Unavailable}
        for name, error in errors.items():
            for _ in range(5):
                with self.assertRaises(error):
                    client.counters.get(name)
        self.assertEqual(asked[-1], ("GET", "Bearer secret"))
        self.assertFalse(client.check(ALICE).degraded)
        with self.assertRaises(weir.Unavailable):
            self.client(gone()).counters.add(weir.CounterDelta("a"))
        client.close()
        with self.assertRaises(weir.Closed):
            client.counters.get("a")

    def test_wrong_token(self):
        def answer(handler):
            status, kind = (403, "forbidden") if handler.headers["Authorization"] else (401, "token-required")
            reply(handler, {"type": "urn:weir:problem:" + kind, "title": "x", "status": status, "detail": "No."}, status)

        address = serve(self, answer)
        for options in ({}, {"token": "secret"}):
            client = self.client(address, **options)
            for _ in range(5):
                with self.assertRaises(weir.Unauthorized):
                    client.check(ALICE)
            with self.assertRaises(weir.Unauthorized):
                client.charge(ALICE)

    def test_fail_open(self):
        v = self.client(gone()).check(ALICE)
        self.assertEqual((v.allowed, v.degraded, v.reason, v.rule, v.results), (True, True, "unavailable", "", []))

    def test_local_fallback(self):
        client = self.client(gone(), on_failure="local", local=weir.LocalLimit(limit=2, period=3600, max_keys=2))

        def ask(**request):
            v = client.check(weir.Request(**request))
            self.assertTrue(v.degraded and v.error)
            return v.allowed, v.remaining

        self.assertEqual(client.peek(ALICE).remaining, 2)
        self.assertEqual(ask(user="alice"), (True, 1))
        self.assertEqual(ask(ip="192.0.2.1"), (True, 1))
        self.assertEqual(ask(user="alice"), (True, 0))
        v = client.check(ALICE)
        self.assertEqual((v.allowed, v.reason, v.rule, v.status), (False, "limits", "local", 429))
        self.assertEqual(v.message, "The limit local is used up; try again in 3600 s.")
        self.assertEqual((v.results[0].key, v.results[0].policy), ("user:alice", "2/1h"))
        # There is room for two clients; all others share what is left of one.
        self.assertEqual(ask(api_key="a"), (True, 1))
        self.assertEqual(ask(api_key="b"), (True, 0))
        self.assertEqual(ask(api_key="c"), (False, 0))
        self.assertEqual(ask(ip="192.0.2.1"), (True, 0))

    def test_local_memory(self):
        client = self.client(gone(), on_failure="local", local=weir.LocalLimit(limit=2, period=3600))
        keys = [client.check(weir.Request(api_key=letter * 2000)).results[0].key for letter in "abc"]
        self.assertEqual(keys, [""] * 3)  # nothing that long is kept

    def test_local_window_ends(self):
        client = self.client(gone(), on_failure="local", local=weir.LocalLimit(limit=1, period=0.05))
        self.assertTrue(client.check(ALICE).allowed)
        until(lambda: client.check(ALICE).allowed)

    def test_breaker(self):
        calls, well = [], []

        def answer(handler):
            calls.append(1)
            if well:
                reply(handler, {"type": "urn:weir:problem:bad-field", "title": "x", "status": 400, "detail": "cost: too large"}, 400)
            else:
                reply(handler, b"busy", 503)

        client = self.client(serve(self, answer))
        for _ in range(3):
            self.assertRegex(str(client.check(ALICE).error), "status 503")
        self.assertEqual(len(calls), 3)
        self.assertTrue(all(client.check(ALICE).degraded for _ in range(50)))
        self.assertLessEqual(len(calls), 4)
        well.append(1)

        def invalid():  # a mistake of the request is an answer
            try:
                client.check(ALICE)
            except weir.Invalid:
                return True

        until(invalid)


class Hostile(unittest.TestCase):
    Client = weir.Client

    def test_hostile_answers(self):
        stolen = []

        def steal(handler):
            stolen.append(1)
            reply(handler, GOOD)

        def endless(handler):
            handler.send_response(200)
            handler.end_headers()
            while True:
                handler.wfile.write(b"x" * 65536)

        def hang_up(handler):
            handler.close_connection = True

        thief = serve(self, steal)
        for name, answer in {
            "not JSON": lambda h: reply(h, b"<html>"),
            "nothing": lambda h: reply(h, b""),
            "not an object": lambda h: reply(h, [GOOD]),
            "a field is missing": lambda h: reply(h, {k: v for k, v in GOOD.items() if k != "allowed"}),
            "a text that is no boolean": lambda h: reply(h, {**GOOD, "allowed": "yes"}),
            "a boolean that is no number": lambda h: reply(h, {**GOOD, "limit": True}),
            "results of something else": lambda h: reply(h, {**GOOD, "results": [None]}),
            "a time that is none": lambda h: reply(h, {**GOOD, "hold_expires_at": "9999-99-99T00:00:00Z"}),
            "not UTF-8": lambda h: reply(h, b'"\xff"'),
            "too deep": lambda h: reply(h, b"[" * 500_000),
            "a number of a megabyte": lambda h: reply(h, b"1" * 1_000_000),
            "too long": lambda h: reply(h, {**GOOD, "rule": "x" * (1 << 20)}),
            "endless": endless,
            "a redirect": lambda h: reply(h, b"", 307, Location=thief),
            "somebody else": lambda h: reply(h, {"detail": "no such page"}, 404),
            "a problem of the host name": lambda h: reply(h, {"type": "urn:weir:problem:foreign-host", "title": "x", "status": 403, "detail": "x"}, 403),
            "it hangs up": hang_up,
            "many headers": lambda h: reply(h, GOOD, **{f"X-{i}": "x" for i in range(200)}),
        }.items():
            with self.subTest(name), self.Client(serve(self, answer), timeout=30, on_failure="closed", token="secret", logger=QUIET) as client:
                v = client.check(ALICE)
                self.assertEqual((v.allowed, v.degraded, v.status), (False, True, 503))
                self.assertNotIn("secret", str(v.error))
        self.assertEqual(stolen, [])
        with self.Client(thief, timeout=30) as client:
            self.assertFalse(client.check(ALICE).degraded)

    def test_timeouts(self):
        released = threading.Event()
        self.addCleanup(released.set)

        def dribble(handler):  # a header that never ends
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            while not released.wait(0.005):
                handler.wfile.write(b"x")

        def dribble_body(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            while not released.wait(0.005):
                handler.wfile.write(b" ")

        for answer in (lambda handler: released.wait(), dribble, dribble_body):
            url = serve(self, answer)
            with self.Client(url, logger=QUIET) as client:
                self.assertRegex(str(client.check(ALICE).error), "timed out")
            with self.Client(url, timeout=600, logger=QUIET) as client:
                self.assertRegex(str(client.check(ALICE, timeout=0.02).error), "timed out")


class Connections(unittest.TestCase):
    Client = weir.Client

    def test_calls_in_flight_are_bounded(self):
        came, release = threading.Semaphore(0), threading.Event()

        def answer(handler):
            came.release()
            release.wait()
            reply(handler, GOOD)

        with self.Client(serve(self, answer), timeout=600, max_in_flight=2) as client:
            threads = [threading.Thread(target=client.check, args=(ALICE,)) for _ in range(2)]
            for thread in threads:
                thread.start()
                came.acquire()
            self.assertRegex(str(client.check(ALICE).error), "too many calls are in flight")
            release.set()
            for thread in threads:
                thread.join()
            self.assertFalse(client.check(ALICE).degraded)

    def test_connections_are_used_again(self):
        ports, tokens = set(), set()

        def answer(handler):
            ports.add(handler.client_address[1])
            tokens.add(handler.headers["Authorization"])
            reply(handler, {"type": "urn:weir:problem:hold-expired", "title": "x", "status": 409, "detail": "The hold has expired."}, 409)

        with self.Client(serve(self, answer) + "/", timeout=30, token="secret") as client:
            for _ in range(3):
                with self.assertRaisesRegex(weir.HoldExpired, "^weir: The hold has expired.$"):
                    client.hold("00").settle(1)
        self.assertEqual((len(ports), tokens), (1, {"Bearer secret"}))

    def test_tls(self):
        key, cert = support.certificate(self)
        url, _ = start_weir(self, more=["--tls-cert", cert, "--tls-key", key])
        trusted = ssl.create_default_context(cafile=cert)
        with self.Client(url, timeout=30, tls=trusted) as client:
            self.assertFalse(client.check(ALICE).degraded)
        with self.Client(url, timeout=30, logger=QUIET) as client:
            self.assertRegex(str(client.check(ALICE).error), "(?i)certificate verify failed")
        ports = set()

        def answer(handler):
            ports.add(handler.client_address[1])
            reply(handler, GOOD)

        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(cert, key)
        with self.Client(serve(self, answer, server), timeout=30, tls=trusted) as client:
            for _ in range(3):
                self.assertFalse(client.check(ALICE).degraded)
        self.assertEqual(len(ports), 1)

    def test_a_connection_that_was_closed_meanwhile(self):
        ports = set()
        closed = threading.Semaphore(0)

        def answer(handler):
            ports.add(handler.client_address[1])
            reply(handler, GOOD)
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            closed.release()

        with self.Client(serve(self, answer), timeout=30) as client:
            for _ in range(3):
                self.assertFalse(client.check(ALICE).degraded)
                closed.acquire()
        self.assertEqual(len(ports), 3)

    def test_many_threads(self):
        results = []
        with self.Client(support.URL, timeout=30) as client:
            def ask():
                for _ in range(20):
                    results.append(client.check(weir.Request(user=f"{self.Client.__name__}-threads", tier="pro", path="/api/x")).allowed)

            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((len(results), sum(results)), (160, 100))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork on Windows")
    def test_a_child_process_has_its_own_connections(self):
        ports = []

        def answer(handler):
            ports.append(handler.client_address[1])
            reply(handler, GOOD)

        with self.Client(serve(self, answer), timeout=30) as client:
            client.check(ALICE)
            child = os.fork()
            if child == 0:
                os._exit(0 if not client.check(ALICE).degraded else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            client.check(ALICE)
        self.assertEqual(len(set(ports)), 2)
        self.assertEqual(ports[0], ports[2])

    def test_closed(self):
        client = self.Client(support.URL)
        client.close()
        with self.assertRaises(weir.Closed):
            client.check(ALICE)

    def test_options(self):
        for args, options, message in (
            (("weir:8080",), {}, "url must be"),
            (("http://me:secret@weir",), {}, "without a user"),
            (("http://weir:port",), {}, "url must be"),
            ((support.URL,), {"timeout": 0}, "timeout is 0; write a positive number of seconds"),
            ((support.URL,), {"max_in_flight": 0}, "max_in_flight"),
            ((support.URL,), {"on_failure": "maybe"}, "write open, closed or local"),
            ((support.URL,), {"on_failure": "local"}, "local is required"),
            ((support.URL,), {"token": "a b"}, "not valid in a header"),
            (("http://weir.example.com",), {"token": "secret"}, "clear text"),
        ):
            with self.assertRaisesRegex(ValueError, message) as caught:
                self.Client(*args, **options)
            self.assertNotIn("secret@", str(caught.exception))
        with self.assertRaises(ValueError):
            weir.LocalLimit(limit=0, period=1)
        self.Client("https://weir.example.com/prefix", token="secret")
        self.Client("http://[::1]:8080", token="secret")
        self.Client("http://weir.example.com", token="secret", plain_token=True)


class AsyncOutage(Outage):
    Client = Blocking


class AsyncHostile(Hostile):
    Client = Blocking


class AsyncConnections(Connections):
    Client = Blocking
    test_a_child_process_has_its_own_connections = None  # a loop does not outlive a fork
