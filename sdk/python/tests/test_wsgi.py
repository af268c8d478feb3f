"""The middleware in wsgiref."""

import http.client
import runpy
import threading
import unittest
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.validate import validator

import weir

from . import support
from .middleware import EXAMPLES, MiddlewareTests


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class WSGI(MiddlewareTests, unittest.TestCase):
    name, Client = "wsgi", weir.Client

    def client(self, url=support.URL):
        return weir.Client(url, timeout=30)

    def path_of(self, environ):
        return environ["PATH_INFO"]

    def header_of(self, environ, name):
        return environ.get("HTTP_" + name.upper().replace("-", "_"), "")

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

    def limit(self, client=None, headers=(), add=True, **options):
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain"), *headers])
            return [b""]

        client = client or self.client()
        self.addCleanup(client.close)
        return self.start(weir.WSGILimit(app, client, headers=add, **options))

    def test_examples(self):
        application = runpy.run_path(str(EXAMPLES / "wsgi.py"))
        self.addCleanup(application["client"].close)
        connection = http.client.HTTPConnection("127.0.0.1", self.start(application["application"]))
        connection.request("GET", "/")
        self.assertEqual(connection.getresponse().read(), b"hello\n")
        connection.close()
        runpy.run_path(str(EXAMPLES / "hold.py"))
