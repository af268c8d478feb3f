// What the search field finds.

export interface Found {
  kind: 'rule' | 'client' | 'lookup'
  name: string
}

const most = 8 // of a kind

// find takes the rules whose id has the text in it, those that begin with it first, and the
// clients that the server found. What looks like a key can be looked up, known or not.
export function find(text: string, rules: string[], keys: string[]): Found[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return []
  const begins = (id: string) => (id.toLowerCase().startsWith(wanted) ? 0 : 1)
  const hits = rules.filter((id) => id.toLowerCase().includes(wanted)).sort((a, b) => begins(a) - begins(b))
  const clients = keys.filter((key) => fits(key.toLowerCase(), wanted))
  const found: Found[] = [
    ...hits.slice(0, most).map((name) => ({ kind: 'rule' as const, name })),
    ...clients.slice(0, most).map((name) => ({ kind: 'client' as const, name })),
  ]
  const key = text.trim()
  if (/^[a-z_]+:./.test(key) && !keys.includes(key)) found.push({ kind: 'lookup', name: key })
  return found
}

// fits is whether a key, or the value behind its kind, begins with a text: answers to what was
// typed before may come late.
function fits(key: string, wanted: string): boolean {
  return key.startsWith(wanted) || key.slice(key.indexOf(':') + 1).startsWith(wanted)
}
