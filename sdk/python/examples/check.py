import os

import weir

client = weir.Client(os.environ.get("WEIR_URL", "http://127.0.0.1:8080"))
verdict = client.check(weir.Request(user="bob", path="/api/items"))
if not verdict.allowed:
    print(f"denied; try again in {verdict.retry_after:.0f} s")
print(verdict.allowed, verdict.remaining)
client.close()
