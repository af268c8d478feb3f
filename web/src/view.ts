// What the overview shows: which time, and of which rule and client. It stands in the address
// and nowhere else, so that it can be shared and survives a reload.

export const ranges = { live: 300, hour: 3600, hours: 21_600, day: 86_400, week: 604_800, month: 2_592_000, year: 31_536_000 } as const
export type Name = keyof typeof ranges

const written: Record<Name, string> = { live: '5m', hour: '1h', hours: '6h', day: '1d', week: '7d', month: '30d', year: '1y' }

export interface Span {
  from: number // Unix seconds
  to: number
}

export interface View {
  range: Name // that ends now
  span: Span | null // instead of it
  rule: string // '' is all
  key: string
}

export function viewOf(query: URLSearchParams): View {
  const said = query.get('range')
  const range = (Object.keys(written) as Name[]).find((name) => written[name] === said) ?? 'live'
  const [from, to] = ['from', 'to'].map((name) => Number(query.get(name) || NaN)) as [number, number]
  const sound = Number.isFinite(from) && Number.isFinite(to) && from > 0 && to - from >= 2 && to < 1e11
  return {
    range,
    span: sound ? { from: Math.floor(from), to: Math.ceil(to) } : null,
    rule: query.get('rule') ?? '',
    key: query.get('key') ?? '',
  }
}

// queryOf writes a view down, without what goes without saying.
export function queryOf(view: View): URLSearchParams {
  const query = new URLSearchParams()
  if (view.range !== 'live') query.set('range', written[view.range])
  if (view.span) {
    query.set('from', String(view.span.from))
    query.set('to', String(view.span.to))
  }
  if (view.rule) query.set('rule', view.rule)
  if (view.key) query.set('key', view.key)
  return query
}

// around is the time about a point that somebody clicked on: some steps before and after it,
// within what is shown.
const steps = 10
export function around(t: number, step: number, shown: Span): Span {
  const from = Math.max(shown.from, Math.floor(t - steps * step))
  return { from, to: Math.max(from + 2, Math.min(shown.to, Math.ceil(t + steps * step))) }
}

// boundsOf is the time that a view shows, if it is now so many seconds.
export function boundsOf(view: View, now: number): Span {
  return view.span ?? { from: now - ranges[view.range], to: now }
}

// pace is how many milliseconds pass between two looks at a view; 0 if it does not change any
// more. What ends now is followed as closely as its steps can be seen.
export function pace(view: View, now: number): number {
  if (view.span) return view.span.to < now - 60 ? 0 : 5000
  if (view.range === 'live' || view.range === 'hour') return 1000
  return view.range === 'hours' || view.range === 'day' ? 5000 : 15_000
}

// slots gives each of a few things a place that it keeps while it is shown, so that its colour
// does not change with its rank.
export function slots(before: Map<string, number>, names: string[]): Map<string, number> {
  const next = new Map(names.flatMap((name) => (before.has(name) ? [[name, before.get(name)!] as const] : [])))
  const taken = new Set(next.values())
  let free = 0
  for (const name of names) {
    if (next.has(name)) continue
    while (taken.has(free)) free++
    next.set(name, free)
    taken.add(free)
  }
  return next
}
