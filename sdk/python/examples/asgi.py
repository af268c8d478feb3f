import os

import weir


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello\n"})


client = weir.AsyncClient(os.environ.get("WEIR_URL", "http://127.0.0.1:8080"))
application = weir.ASGILimit(
    app,
    client,
    request=lambda scope: weir.Request(user=scope.get("verified_user", "")),  # from your login, not from a header
    skip=lambda scope: scope["path"] == "/healthz",
)
