import os

import weir

with weir.Client(os.environ.get("WEIR_URL", "http://127.0.0.1:8080"), timeout=10) as client:
    views, users = client.counters.add(
        weir.CounterDelta("views", window="day", zone="Asia/Shanghai"),
        weir.CounterDelta("users", window="month", distinct=True, members=["alice"]),
    )
    client.counters.observe(weir.Sample("checkout_ms", window="minute", values=[12.5, 14, 180]))
    [days] = client.counters.history("views", window="day", zone="Asia/Shanghai", n=7)
    [checkout] = client.counters.distributions("checkout_ms", window="minute", n=60)
    print(views, users, len(days), checkout.merged.p95)
