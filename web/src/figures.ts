// The figures of the overview: of all requests, of a rule, or of a client.

import type { ClientSeries, Counts, Point, Summary } from './api/stats'

export interface Figures {
  requests: number
  rate: number
  share: number | null // of requests that were denied; null without requests
  p99: number | null // microseconds
  degraded: number
  degradedDenied: number // of these
}

const figures = (c: Omit<Counts, 'rate'>, rate: number, p99: number | null): Figures => ({
  requests: c.requests,
  rate,
  share: c.requests > 0 ? c.denied / c.requests : null,
  p99: c.requests > 0 ? p99 : null,
  degraded: c.degraded_allowed + c.degraded_denied,
  degradedDenied: c.degraded_denied,
})

const none: Counts = { requests: 0, rate: 0, allowed: 0, denied: 0, shadow_denied: 0, soft_denied: 0, degraded_allowed: 0, degraded_denied: 0, blocked: 0, unknown_client: 0 }

// figuresOf takes them from a summary; a rule that it does not name was not asked.
export function figuresOf(s: Summary, rule: string): Figures {
  if (rule === '') return figures(s, s.rate, s.latency_us.p99)
  const r = s.rules?.find((r) => r.rule === rule)
  return figures(r ?? none, r?.rate ?? 0, r?.latency_us?.p99 ?? null)
}

// pointsOf are the points of a client, as those of everything are.
export function pointsOf(s: ClientSeries): Point[] {
  return s.points.map(({ t, allowed, denied }) => ({ ...none, t, allowed, denied, requests: allowed + denied, rate: (allowed + denied) / Math.max(1, s.step_s) }))
}

// figuresOfClient are what rankings know of one.
export function figuresOfClient(s: ClientSeries): Figures {
  const sum = (pick: 'allowed' | 'denied') => s.points.reduce((n, p) => n + p[pick], 0)
  const [allowed, denied] = [sum('allowed'), sum('denied')]
  return figures({ ...none, requests: allowed + denied, allowed, denied }, (allowed + denied) / Math.max(1, s.to - s.from), null)
}

// lengthOf is how many seconds a step has lasted: the last one may have just begun.
export const lengthOf = (t: number, step: number, now: number): number => Math.max(1, Math.min(step, now - t))
