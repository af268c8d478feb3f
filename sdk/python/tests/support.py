"""What the tests share: the table of cases, a weir of their own, and servers that misbehave."""

import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

URL = os.environ["WEIR_URL"]
RULES = os.path.join(os.path.dirname(os.path.abspath(os.environ["WEIR_CASES"])), "rules.yaml")
QUIET = logging.getLogger("quiet")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


def cases(name):
    """The table, for a client with this name."""
    with open(os.environ["WEIR_CASES"], encoding="utf-8") as file:
        return json.loads(file.read().replace("$", name + "-"))


def start_weir(test, at="127.0.0.1:0", rules=None, more=()):
    """Starts a weir, and waits until it listens. at is where, to start it again; more are further flags."""
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    if rules is None:
        shutil.copy(RULES, folder.name)  # beside which weir keeps their history
    else:
        Path(folder.name, "rules.yaml").write_text(rules, encoding="utf-8")
    process = subprocess.Popen(
        [os.environ["WEIR_BINARY"], "serve", "--http", at, "--grpc", "off", *more],
        cwd=folder.name, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )

    def kill():
        process.kill()
        process.wait()
        process.stdout.close()

    test.addCleanup(kill)
    for line in process.stdout:
        found = re.match(r"weir listens on (\S+)", line)
        if found:
            return found[1], kill
    raise AssertionError("weir ended before it listened")


def certificate(test):
    """Makes a key and a certificate of 127.0.0.1, and returns their files."""
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    key, cert = os.path.join(folder.name, "key.pem"), os.path.join(folder.name, "cert.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
         "-days", "2", "-subj", "/CN=weir", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )
    return key, cert


def serve(test, answer, tls=None):
    """Starts a server whose answer is a function of the handler, until the test ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.do_POST()

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            try:
                answer(self)
            except OSError:
                self.close_connection = True  # the client has had enough

        def handle(self):
            try:
                super().handle()
            except ConnectionError:  # while it waits for the next request
                pass

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()

    def stop():
        server.shutdown()
        thread.join()
        server.server_close()

    test.addCleanup(stop)
    return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"


def reply(handler, body, status=200, **headers):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def until(holds):
    """Waits until something holds."""
    while not holds():
        time.sleep(0.01)
