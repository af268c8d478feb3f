import os

import weir
from fastapi import FastAPI

client = weir.AsyncClient(os.environ.get("WEIR_URL", "http://127.0.0.1:8080"))
app = FastAPI()
app.add_middleware(weir.ASGILimit, client=client)


@app.get("/api/items")
async def items():
    return []
