// Reads requests as programs in JavaScript do.
const number = (v) => {
  if (v == null) return null;
  if (Number.isNaN(Number(v)) || typeof v === "object") throw new Error();
  return Math.trunc(Number(v));
};

const read = (raw, decoder) => {
  const body = JSON.parse(decoder.decode(raw));
  if (body.model != null && typeof body.model !== "string") throw new Error();
  let text = 0;
  for (const m of body.messages) text += Buffer.byteLength(m.content);
  const limit = number(body.max_completion_tokens) ?? number(body.max_tokens) ?? 0;
  return { model: body.model ?? "", text, max: Math.max(0, limit), n: Math.max(1, number(body.n) ?? 1) };
};

for (const line of require("fs").readFileSync(0, "utf8").trim().split("\n")) {
  const r = JSON.parse(line), found = [];
  for (const charset of ["utf-8", /charset=([\w-]+)/.exec(r.type)?.[1] ?? "utf-8"]) {
    try {
      found.push(read(Buffer.from(r.body, "base64"), new TextDecoder(charset)));
    } catch {}
  }
  console.log(JSON.stringify(found));
}
