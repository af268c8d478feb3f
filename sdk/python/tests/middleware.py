"""What the middleware for WSGI and ASGI answers alike, with a real weir and a real server."""

import http.client
import json
import re
import time
from pathlib import Path

import weir

from . import support

LIMITS = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Degraded", "RateLimit-Policy", "RateLimit", "RateLimit-Warning", "Retry-After"]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def masked(value):
    if isinstance(value, int):
        return "N" if value > 999 else value
    return re.sub(r"(;w=\d+)|\d{4,}", lambda found: found[1] or "N", value) if isinstance(value, str) else value


class MiddlewareTests:
    """A test case adds: name, Client, path_of(what), header_of(what, name), limit(client, headers, **options).

    limit serves an application behind the middleware, and returns the port. The application answers
    with 200, with headers, and without a body. what is the environ, or the scope.
    """

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

    def by_header(self, what):
        return weir.Request(user=self.header_of(what, "X-Test-User"))

    def test_table(self):
        port = self.limit(request=self.by_header)
        for want in support.cases(self.name)["http"]:
            path, user = want.pop("path"), want.pop("user")
            self.assertEqual(self.get(port, path, **{"X-Test-User": user}), want, path)

    def test_head(self):
        port = self.limit(request=lambda what: weir.Request(user="mallory"))
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("HEAD", "/")
        response = connection.getresponse()
        self.assertEqual((response.status, response.read()), (403, b""))
        connection.close()

    def test_nothing_that_a_client_sends_is_believed(self):
        lies = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9", "X-Real-IP": "203.0.113.9", "X-API-Key": "k"}
        self.assertEqual(self.get(self.limit(), "/", **lies)["status"], 200)
        behind = self.limit(request=lambda what: weir.Request(ip=self.header_of(what, "X-Real-IP")))
        self.assertEqual(self.get(behind, "/", **lies)["status"], 403)
        seen = []
        client = self.client()
        check = client.check

        def spy(request):
            seen.append(request)
            return check(request)

        client.check = spy
        self.get(self.limit(client), "/a%20b/%C3%A4?c=d")
        self.assertEqual((seen[0].ip, seen[0].method, seen[0].path), ("127.0.0.1", "GET", "/a%20b/%C3%A4"))
        self.assertRegex(seen[0].host, "^127.0.0.1:")

    def test_options(self):
        def deny(denial, verdict, what):
            denial.status, denial.body = 420, json.dumps({"rule": verdict.rule}).encode()
            return denial

        port = self.limit(request=self.by_header, add=False, skip=lambda what: self.path_of(what) == "/skipped", deny=deny)
        user = {"X-Test-User": f"{self.name}-options"}
        self.assertEqual([self.get(port, "/login", **user)["status"] for _ in range(3)], [200, 200, 420])
        self.assertEqual(self.get(port, "/login", **user), {"status": 420, "headers": {}, "body": {"rule": "login"}})
        self.assertEqual(self.get(port, "/skipped", **{"X-Test-User": "mallory"})["status"], 200)

    def test_the_application_has_the_last_word(self):
        port = self.limit(headers=[("ratelimit", "mine")], request=self.by_header)
        got = self.get(port, "/login", **{"X-Test-User": f"{self.name}-last"})
        self.assertEqual((got["headers"]["RateLimit"], got["headers"]["X-RateLimit-Limit"]), ("mine", "2"))

    def test_invalid(self):
        got = self.get(self.limit(), "/" + "x" * 9000)
        detail = "The request is invalid, so its limits cannot be checked."
        self.assertEqual(got, {"status": 400, "headers": {}, "body": {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": detail}})

    def test_weir_is_unavailable(self):
        def nowhere(on_failure):
            return self.Client("http://127.0.0.1:1", on_failure=on_failure, logger=support.QUIET, local=weir.LocalLimit(limit=1, period=3600))

        self.assertEqual(self.get(self.limit(nowhere("open")), "/"), {"status": 200, "headers": {"X-RateLimit-Degraded": "1"}})
        closed = self.get(self.limit(nowhere("closed")), "/")
        self.assertEqual((closed["status"], closed["headers"]), (503, {"X-RateLimit-Degraded": "1", "Retry-After": "5"}))
        self.assertEqual((closed["body"]["title"], closed["body"]["retry_after"]), ("Temporary Reduced Capacity", 5))
        port = self.limit(nowhere("local"))
        self.assertEqual(self.get(port, "/")["status"], 200)
        denied = self.get(port, "/")
        self.assertEqual((denied["status"], denied["headers"]["RateLimit-Policy"], denied["headers"]["RateLimit"]), (429, '"local";q=1;w=3600', '"local";r=0;t=N'))

    def test_the_store_is_unavailable(self):
        rules = "rules:\n- {id: open, match: {path: /open}, key: ip, limit: 1/1h}\n- {id: closed, match: {path: /closed}, key: ip, limit: 1/1h, on_failure: closed}\n"
        url, _ = support.start_weir(self, rules=rules, more=["--store", "redis://127.0.0.1:1"])
        port = self.limit(self.client(url))
        for _ in range(2):
            self.assertEqual(self.get(port, "/open"), {"status": 200, "headers": {"X-RateLimit-Degraded": "1"}})
        denied = self.get(port, "/closed")
        self.assertEqual((denied["status"], denied["headers"]["X-RateLimit-Degraded"], denied["body"]["title"]), (503, "1", "Temporary Reduced Capacity"))

    def test_shaped(self):
        port = self.limit(request=self.by_header)
        before = time.monotonic()
        for _ in range(3):
            self.assertEqual(self.get(port, "/turns", **{"X-Test-User": f"{self.name}-shaped"})["status"], 200)
        self.assertGreaterEqual(time.monotonic() - before, 0.09)  # the second and the third wait for 50 ms each
        full = self.limit(request=self.by_header, max_delayed=0)
        with weir.Client(support.URL, timeout=30) as client:
            self.assertTrue(client.check(weir.Request(user=f"{self.name}-full", path="/turns", cost=9)).allowed)  # for 450 ms
        got = self.get(full, "/turns", **{"X-Test-User": f"{self.name}-full"})
        self.assertEqual((got["status"], got["headers"]["Retry-After"]), (503, "1"))
        self.assertEqual(got["body"]["detail"], "Too many requests are delayed; try again soon.")
