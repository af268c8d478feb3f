// A sample request for POST /v1/check, which is only looked at.

export function sample(fields: Record<string, string>, more: string): Record<string, unknown> {
  const body: Record<string, unknown> = { peek: true }
  for (const [name, value] of Object.entries(fields)) {
    if (value.trim() !== '') body[name] = value.trim()
  }
  const groups: Record<string, string> = { header: 'headers', cookie: 'cookies', query: 'query', attr: 'attributes', attribute: 'attributes' }
  for (const line of more.split('\n')) {
    const found = /^\s*(\w+)\s+([^:=]+?)\s*[:=]\s*(.*?)\s*$/.exec(line)
    const group = found && groups[found[1]!.toLowerCase()]
    if (!found || !group) continue
    body[group] = { ...(body[group] as object | undefined), [found[2]!]: found[3]! }
  }
  return body
}
