"""The middleware in uvicorn, alone and with Starlette, FastAPI and Django."""

import asyncio
import http.client
import json
import runpy
import threading
import unittest
import warnings
from contextlib import asynccontextmanager

import weir

from . import support
from .middleware import EXAMPLES, MiddlewareTests

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what they use themselves
    import django.conf
    import uvicorn
    import websockets
    from django.core.asgi import get_asgi_application
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse, JsonResponse
    from django.urls import path
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route
    from uvicorn.lifespan import on  # noqa: F401
    from uvicorn.protocols.http import h11_impl  # noqa: F401
    from uvicorn.protocols.websockets import websockets_impl  # noqa: F401


def serve(test, app):
    """Serves an application until the test ends, and returns the port."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, http="h11", ws="websockets", log_config=None, proxy_headers=False))

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.run()

    thread = threading.Thread(target=run)
    thread.start()

    def stop():
        server.should_exit = True
        thread.join()

    test.addCleanup(stop)
    support.until(lambda: server.started)
    return server.servers[0].sockets[0].getsockname()[1]


class Application:
    """Answers with 200, and closes the client when the server ends, which only works if lifespan passes."""

    def __init__(self, client, headers=(), answer=None):
        self._client, self._headers, self._answer = client, [(n.encode(), v.encode()) for n, v in headers], answer
        self.events = []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                event = await receive()
                self.events.append(event["type"])
                if event["type"] == "lifespan.shutdown":
                    await self._client.close()
                await send({"type": event["type"] + ".complete"})
                if event["type"] == "lifespan.shutdown":
                    return
        if self._answer:
            return await self._answer(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": b""})


def with_lifespan(app, client):
    """An application that has no lifespan of its own, with that of Application."""

    async def both(scope, receive, send):
        await (Application(client) if scope["type"] == "lifespan" else app)(scope, receive, send)

    return both


class ASGI(MiddlewareTests, unittest.TestCase):
    name, Client = "asgi", weir.AsyncClient

    def client(self, url=support.URL):
        return weir.AsyncClient(url, timeout=30)

    def path_of(self, scope):
        return scope["path"]

    def header_of(self, scope, name):
        return dict(scope["headers"]).get(name.lower().encode(), b"").decode()

    def limit(self, client=None, headers=(), add=True, answer=None, **options):
        client = client or self.client()
        self.app = Application(client, headers, answer)
        return serve(self, weir.ASGILimit(self.app, client, headers=add, **options))

    def test_request_may_be_a_coroutine(self):
        async def known(scope):
            await asyncio.sleep(0)
            return weir.Request(user="mallory")

        self.assertEqual(self.get(self.limit(request=known), "/")["status"], 403)

    def test_lifespan(self):
        self.get(self.limit(), "/")
        self.doCleanups()  # the server ends
        self.assertEqual(self.app.events, ["lifespan.startup", "lifespan.shutdown"])
        with self.assertRaises(weir.Closed):
            asyncio.run(self.app._client.check(weir.Request()))

    def test_paths_are_as_they_were_sent(self):
        async def seen(raw, **more):
            requests = []

            class Spy:
                async def check(_, request):
                    requests.append(request)
                    return weir.Verdict(allowed=True)

            scope = {"type": "http", "method": "GET", "path": "/a b/ä", "headers": [], "client": None, **more}
            if raw is not None:
                scope["raw_path"] = raw
            await weir.ASGILimit(Application(None), Spy())(scope, None, self.ignore)
            return requests[0].ip, requests[0].path

        for raw, want in {
            b"/a%2Fb": "/a%2Fb", b"/a?b=c": "/a", b"/\xc3\xa4": "/%C3%A4", b"*": "", b"http://a/b": "", None: "/a%20b/%C3%A4",
        }.items():
            self.assertEqual(asyncio.run(seen(raw)), ("127.0.0.1", want), raw)  # a Unix socket has no address
        self.assertEqual(asyncio.run(seen(b"/", client=("fe80::1%eth0", 7))), ("fe80::1", "/"))

    async def ignore(self, message):
        pass

    def test_bodies_pass_as_they_come(self):
        async def echo(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            more = True
            while more:
                event = await receive()
                more = event.get("more_body", False)
                await send({"type": "http.response.body", "body": event["body"], "more_body": more})

        port = self.limit(answer=echo, request=self.by_header)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest("POST", "/login")
        connection.putheader("Content-Length", "6")
        connection.putheader("X-Test-User", "asgi-bodies")
        connection.endheaders(b"abc")
        response = connection.getresponse()
        self.assertEqual((response.headers["X-RateLimit-Remaining"], response.read1()), ("1", b"abc"))
        connection.send(b"def")  # the answer to the first half is here already
        self.assertEqual(response.read(), b"def")
        connection.close()

    def test_websocket(self):
        async def accept(scope, receive, send):
            self.assertEqual(scope["type"], "websocket")
            await receive()
            await send({"type": "websocket.accept", "headers": []})
            message = await receive()
            await send({"type": "websocket.send", "text": message["text"] + "!"})
            await receive()

        port = self.limit(answer=accept, request=self.by_header)

        async def talk():
            async with websockets.connect(f"ws://127.0.0.1:{port}/login", extra_headers={"X-Test-User": "asgi-socket"}) as ws:
                await ws.send("hello")
                return ws.response_headers["X-RateLimit-Remaining"], await ws.recv()

        self.assertEqual(asyncio.run(talk()), ("1", "hello!"))
        self.assertEqual(asyncio.run(talk()), ("0", "hello!"))
        with self.assertRaises(websockets.InvalidStatusCode) as caught:
            asyncio.run(talk())
        self.assertEqual(caught.exception.status_code, 403)  # this server can send nothing else

    def test_websocket_with_a_denial_response(self):
        sent = []

        async def deny():
            async def connect():
                return {"type": "websocket.connect"}

            async def send(message):
                sent.append(message)

            scope = {"type": "websocket", "path": "/", "headers": [], "client": ("203.0.113.9", 1), "extensions": {"websocket.http.response": {}}}
            async with self.client() as client:
                await weir.ASGILimit(Application(client), client)(scope, connect, send)

        asyncio.run(deny())
        self.assertEqual([m["type"] for m in sent], ["websocket.http.response.start", "websocket.http.response.body"])
        self.assertEqual((sent[0]["status"], json.loads(sent[1]["body"])["title"]), (403, "Forbidden"))

    def test_cancelled_while_delayed(self):
        async def cancel():
            calls = []

            class Shaped:
                async def check(_, request):
                    calls.append(request)
                    return weir.Verdict(allowed=True, delay=600.0)

            limit = weir.ASGILimit(Application(None), Shaped(), max_delayed=1)
            scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
            for _ in range(2):  # the second one has the place of the first
                task = asyncio.ensure_future(limit(scope, None, self.ignore))
                while not limit._delayed:
                    await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
            self.assertEqual((len(calls), limit._delayed), (2, 0))

        asyncio.run(cancel())


class Frameworks(unittest.TestCase):
    def get(self, port, path, user):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers={"X-Test-User": user})
        response = connection.getresponse()
        got = response.status, response.headers["X-RateLimit-Remaining"], response.read()
        connection.close()
        return got

    def assert_limits(self, port, user, body):
        """The rule login allows two, and then denies with 403."""
        self.assertEqual([self.get(port, "/login", user) for _ in range(2)], [(200, "1", body), (200, "0", body)])
        status, remaining, denied = self.get(port, "/login", user)
        self.assertEqual((status, remaining, json.loads(denied)["rule"]), (403, "0", "login"))
        self.assertEqual(self.get(port, "/free", user)[:2], (200, None))

    @staticmethod
    def by_header(scope):
        return weir.Request(user=dict(scope["headers"]).get(b"x-test-user", b"").decode())

    def test_starlette(self):
        async def stream(request):
            async def parts():
                yield b"a"
                await asyncio.sleep(0)
                yield b"b"

            return StreamingResponse(parts())

        client = weir.AsyncClient(support.URL, timeout=30)

        @asynccontextmanager
        async def lifespan(app):
            async with client:
                yield

        app = Starlette(routes=[Route("/login", stream), Route("/free", stream)], lifespan=lifespan)
        app.add_middleware(weir.ASGILimit, client=client, request=self.by_header)
        self.assert_limits(serve(self, app), "asgi-starlette", b"ab")

    def test_fastapi(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = runpy.run_path(str(EXAMPLES / "fastapi_app.py"))
        port = serve(self, with_lifespan(parts["app"], parts["client"]))
        status, _, body = self.get(port, "/api/items", "")
        self.assertEqual((status, body), (200, b"[]"))

    def test_example(self):
        parts = runpy.run_path(str(EXAMPLES / "asgi.py"))

        async def ask():
            sent = []

            async def send(message):
                sent.append(message)

            await parts["application"]({"type": "http", "method": "GET", "path": "/", "headers": []}, None, send)
            await parts["client"].close()
            return sent[-1]["body"]

        self.assertEqual(asyncio.run(ask()), b"hello\n")

    def test_django(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            django.conf.settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of the test", USE_TZ=True)
            django.setup()
            over_asgi, over_wsgi = get_asgi_application(), get_wsgi_application()
        client = weir.AsyncClient(support.URL, timeout=30)
        limit = weir.ASGILimit(with_lifespan(over_asgi, client), client, request=self.by_header)
        self.assert_limits(serve(self, limit), "asgi-django", b"hello")
        with weir.Client(support.URL, timeout=30) as blocking:
            limit = weir.WSGILimit(over_wsgi, blocking, request=lambda environ: weir.Request(user="wsgi-django"))
            from .test_wsgi import WSGI

            port = WSGI.start(self, limit)
            self.assertEqual([self.get(port, "/login", "")[0] for _ in range(3)], [200, 200, 403])


urlpatterns = [path("login", lambda request: HttpResponse("hello")), path("free", lambda request: JsonResponse({}))]
