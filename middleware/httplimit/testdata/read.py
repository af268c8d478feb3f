# Reads requests as programs in Python do, behind a server that resolves paths as nginx does.
import base64, gzip, json, posixpath, re, sys
from urllib.parse import unquote

def number(v):
    if v is None:
        return None
    if not isinstance(v, (int, float, str)) or v != v:
        raise ValueError
    return int(v)

def read(path, encoding, raw):
    body = json.loads(gzip.decompress(raw) if encoding == "gzip" else raw)
    model = body.get("model")
    found = re.search("/deployments/([^/]+)/", path, re.I) or re.search("/models/([^/]+):generateContent$", path, re.I)
    if found:
        model = found[1]
    if not isinstance(model, str) and model is not None:
        raise ValueError
    text = 0
    for m in body["messages"]:
        text += len(m["content"].encode("utf-8", "surrogatepass"))
    limits = [number(body.get(name)) for name in ("max_completion_tokens", "max_tokens")]
    limit = next((n for n in limits if n is not None), 0)
    # Programs in C end a text at its first zero.
    return {"model": (model or "").split("\0")[0], "text": text, "max": max(0, limit), "n": max(1, number(body.get("n")) or 1)}

for line in sys.stdin:
    r = json.loads(line)
    found = []
    for path in (r["path"], posixpath.normpath(unquote(r["path"]))):
        try:
            found.append(read(path, r["encoding"], base64.b64decode(r["body"])))
        except Exception:
            pass
    print(json.dumps(found))
