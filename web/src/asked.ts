// What the page of counters is asked for. It stands in the address and nowhere else, so
// that a page can be bookmarked and sent to somebody.

import type { Named } from './api/counters'

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

// found is the query that shows something from the list of names, beside what is shown already.
// The other counters stay if they are asked for in the same way.
export function found(query: URLSearchParams, one: Named): URLSearchParams {
  const next = new URLSearchParams(query)
  const put = (fields: Record<string, string | number | undefined>) => {
    for (const [name, value] of Object.entries(fields)) {
      if (value) next.set(name, String(value))
      else next.delete(name)
    }
  }
  const window = one.window === 'ever' ? '' : one.window
  if (one.kind === 'counter' || one.kind === 'distinct') {
    const asked = { window, group: one.group, zone: one.zone, distinct: one.kind === 'distinct' ? 'true' : '' }
    const alike = Object.entries(asked).every(([name, value]) => (query.get(name) ?? '') === (value ?? ''))
    put(asked)
    const names = alike ? query.getAll('name').filter((name) => name && name !== one.name) : []
    next.delete('name')
    for (const name of [...names, one.name].slice(-shownNames)) next.append('name', name)
  } else if (one.kind === 'distribution') {
    put({ dist: one.name, dist_window: window, dist_group: one.group, dist_zone: one.zone })
  } else if (one.kind === 'board') {
    put({ board: one.name, board_window: window, board_zone: one.zone, board_sliding_s: one.sliding_s, board_ago: '' })
  } else {
    put({ hot: one.name, hot_window_s: one.sliding_s, hot_threshold: one.threshold, hot_cool: one.cool === one.threshold ? '' : one.cool })
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
