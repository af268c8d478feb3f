import os

import weir

with weir.Client(os.environ.get("WEIR_URL", "http://127.0.0.1:8080")) as client:
    hold, verdict = client.reserve(weir.Request(user="bob", path="/chat", cost={"tokens": 700}))  # an estimate
    if verdict.allowed:
        tokens = 512  # … do the work, and count …
        hold.settle({"tokens": tokens}, timeout=10)  # no client waits for it
