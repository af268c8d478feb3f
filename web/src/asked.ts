// What the page of counters is asked for. It stands in the address and nowhere else, so
// that a page can be bookmarked and sent to somebody.

export interface Question {
  path: string
  query: Record<string, string | string[]>
}

export const windows = ['ever', 'second', 'minute', 'hour', 'day', 'month', 'year'] as const
export const shownNames = 50 // counters that are looked at at once
export const shownRows = 20

// changed is the query with a field replaced. What is empty is not written down.
export function changed(query: URLSearchParams, name: string, values: string[]): URLSearchParams {
  const next = new URLSearchParams(query)
  next.delete(name)
  for (const value of values) {
    if (value !== '') next.append(name, value)
  }
  return next
}

// lines are the names in a field that has one a line.
export function lines(text: string): string[] {
  const all = text.split('\n').map((line) => line.trim())
  return [...new Set(all.filter((line) => line !== ''))].slice(0, shownNames)
}

// said takes fields of the address under the names that the API has for them, and leaves
// out what was not given.
function said(query: URLSearchParams, fields: Record<string, string>): Record<string, string> {
  const all: Record<string, string> = {}
  for (const [field, name] of Object.entries(fields)) {
    const value = query.get(field) ?? ''
    if (value !== '') all[name] = value
  }
  return all
}

// counters asks for the counters that are named, distribution for percentiles, board for the
// leaderboard, and hot for the hot list; null if none is.
export function counters(query: URLSearchParams): Question | null {
  const name = query.getAll('name').filter(Boolean).slice(0, shownNames)
  if (name.length === 0) return null
  return { path: '/v1/counters', query: { name, ...said(query, { group: 'group', window: 'window', zone: 'zone', distinct: 'distinct' }) } }
}

export function distribution(query: URLSearchParams): Question | null {
  if (!query.get('dist')) return null
  return { path: '/v1/distributions', query: said(query, { dist: 'name', dist_group: 'group', dist_window: 'window', dist_zone: 'zone' }) }
}

export function board(query: URLSearchParams): Question | null {
  if (!query.get('board')) return null
  const sliding = query.get('board_sliding_s')
  // A board of the last so much time has no other window.
  const window: Record<string, string> = sliding ? { board_sliding_s: 'sliding_s' } : { board_window: 'window', board_zone: 'zone', board_ago: 'ago' }
  return { path: '/v1/boards/top', query: { ...said(query, { board: 'board', ...window }), n: String(shownRows) } }
}

export function hot(query: URLSearchParams): Question | null {
  if (!query.get('hot') || !query.get('hot_window_s') || !query.get('hot_threshold')) return null
  const fields = { hot: 'list', hot_window_s: 'window_s', hot_threshold: 'threshold', hot_cool: 'cool' }
  return { path: '/v1/hot', query: { ...said(query, fields), n: String(shownRows) } }
}
