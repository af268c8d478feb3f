"""The middleware in wsgiref, with a real weir, answers as the table says."""

import http.client
import json
import re
import runpy
import threading
import time
import unittest
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.validate import validator

import weir

from . import support

LIMITS = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Degraded", "RateLimit-Policy", "RateLimit", "RateLimit-Warning", "Retry-After"]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, *args):
        pass


def masked(value):
    if isinstance(value, int):
        return "N" if value > 999 else value
    return re.sub(r"(;w=\d+)|\d{4,}", lambda found: found[1] or "N", value) if isinstance(value, str) else value


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b""]


class Middleware(unittest.TestCase):
    def setUp(self):
        self.client = weir.Client(support.URL, timeout=30)
        self.addCleanup(self.client.close)

    def start(self, app):
        """Serves an application until the test ends."""
        server = make_server("127.0.0.1", 0, validator(app), Server, Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def stop():
            server.shutdown()
            thread.join()
            server.server_close()

        self.addCleanup(stop)
        return server.server_port

    def limit(self, client=None, app=hello, **options):
        return self.start(weir.WSGILimit(app, client or self.client, **options))

    def get(self, port, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        got = {"status": response.status, "headers": {n: masked(response.headers[n]) for n in LIMITS if n in response.headers}}
        if text:
            got["body"] = {name: masked(value) for name, value in json.loads(text).items()}
            self.assertEqual(response.headers["Content-Type"], "application/problem+json")
            self.assertEqual(response.headers["Cache-Control"], "no-store")
        return got

    def by_header(self, environ):
        return weir.Request(user=environ.get("HTTP_X_TEST_USER", ""))

    def test_table(self):
        port = self.limit(request=self.by_header)
        for want in support.cases("wsgi")["http"]:
            path, user = want.pop("path"), want.pop("user")
            self.assertEqual(self.get(port, path, **{"X-Test-User": user}), want, path)

    def test_nothing_that_a_client_sends_is_believed(self):
        lies = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9", "X-Real-IP": "203.0.113.9", "X-API-Key": "k"}
        self.assertEqual(self.get(self.limit(), "/", **lies)["status"], 200)
        behind = self.limit(request=lambda environ: weir.Request(ip=environ.get("HTTP_X_REAL_IP", "")))
        self.assertEqual(self.get(behind, "/", **lies)["status"], 403)
        seen = []

        class Spy:
            def check(_, request):
                seen.append(request)
                return self.client.check(request)

        self.get(self.limit(Spy()), "/a%20b/%C3%A4?c=d")
        self.assertEqual((seen[0].ip, seen[0].method, seen[0].path), ("127.0.0.1", "GET", "/a%20b/%C3%A4"))
        self.assertRegex(seen[0].host, "^127.0.0.1:")

    def test_options(self):
        def deny(denial, verdict, environ):
            denial.status, denial.body = 420, json.dumps({"rule": verdict.rule}).encode()
            return denial

        port = self.limit(request=self.by_header, headers=False, skip=lambda environ: environ["PATH_INFO"] == "/skipped", deny=deny)
        user = {"X-Test-User": "wsgi-options"}
        self.assertEqual([self.get(port, "/login", **user)["status"] for _ in range(3)], [200, 200, 420])
        self.assertEqual(self.get(port, "/login", **user), {"status": 420, "headers": {}, "body": {"rule": "login"}})
        self.assertEqual(self.get(port, "/skipped", **{"X-Test-User": "mallory"})["status"], 200)

    def test_the_application_has_the_last_word(self):
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain"), ("ratelimit", "mine")])
            return [b""]

        got = self.get(self.limit(app=app, request=self.by_header), "/login", **{"X-Test-User": "wsgi-last"})
        self.assertEqual((got["headers"]["RateLimit"], got["headers"]["X-RateLimit-Limit"]), ("mine", "2"))

    def test_invalid(self):
        got = self.get(self.limit(), "/" + "x" * 9000)
        detail = "The request is invalid, so its limits cannot be checked."
        self.assertEqual(got, {"status": 400, "headers": {}, "body": {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": detail}})

    def test_unavailable(self):
        def nowhere(on_failure):
            return weir.Client("http://127.0.0.1:1", on_failure=on_failure, logger=support.QUIET, local=weir.LocalLimit(limit=1, period=3600))

        self.assertEqual(self.get(self.limit(nowhere("open")), "/"), {"status": 200, "headers": {"X-RateLimit-Degraded": "1"}})
        closed = self.get(self.limit(nowhere("closed")), "/")
        self.assertEqual((closed["status"], closed["headers"]), (503, {"X-RateLimit-Degraded": "1", "Retry-After": "5"}))
        self.assertEqual((closed["body"]["title"], closed["body"]["retry_after"]), ("Temporary Reduced Capacity", 5))
        port = self.limit(nowhere("local"))
        self.assertEqual(self.get(port, "/")["status"], 200)
        denied = self.get(port, "/")
        self.assertEqual((denied["status"], denied["headers"]["RateLimit-Policy"], denied["headers"]["RateLimit"]), (429, '"local";q=1;w=3600', '"local";r=0;t=N'))

    def test_shaped(self):
        port = self.limit(request=self.by_header)
        before = time.monotonic()
        for _ in range(3):
            self.assertEqual(self.get(port, "/turns", **{"X-Test-User": "wsgi-shaped"})["status"], 200)
        self.assertGreaterEqual(time.monotonic() - before, 0.09)  # the second and the third wait for 50 ms each
        full = weir.WSGILimit(hello, self.client, max_delayed=1)
        self.assertTrue(full._room.acquire(blocking=False))
        verdict = weir.Verdict(allowed=True, delay=1.0)
        full._delay(verdict)
        self.assertEqual((verdict.allowed, verdict.status, verdict.retry_after), (False, 503, 1.0))

    def test_examples(self):
        application = runpy.run_path(str(EXAMPLES / "wsgi.py"))
        self.addCleanup(application["client"].close)
        connection = http.client.HTTPConnection("127.0.0.1", self.start(application["application"]))
        connection.request("GET", "/")
        self.assertEqual(connection.getresponse().read(), b"hello\n")
        connection.close()
        runpy.run_path(str(EXAMPLES / "hold.py"))
