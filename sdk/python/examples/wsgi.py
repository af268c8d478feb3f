import os

import weir


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello\n"]


client = weir.Client(os.environ.get("WEIR_URL", "http://127.0.0.1:8080"))
application = weir.WSGILimit(
    app,
    client,
    request=lambda environ: weir.Request(user=environ.get("REMOTE_USER", "")),  # from your login, not from a header
    skip=lambda environ: environ["PATH_INFO"] == "/healthz",
)
