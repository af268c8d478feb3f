// What the HTTP API tells of what happened, as docs/reference/api.md has it. Times are Unix
// seconds, except those of alerts, which are RFC 3339.

import type { RuleProblem } from './types'

export interface Latency {
  p50: number
  p90: number
  p99: number
  mean: number
}

// Counts are how requests ended, each in exactly one way.
export interface Counts {
  requests: number
  rate: number
  allowed: number
  denied: number
  shadow_denied: number
  soft_denied: number
  degraded_allowed: number
  degraded_denied: number
  blocked: number
  unknown_client: number
}

// InFlight is how many requests of a rule were in flight, and for how long.
export interface InFlight {
  mean: number // of all clients together
  highest: number // of one client
  held_us?: Latency // of those that ended
}

// LevelTotals is how often a level of a rule has denied.
export interface LevelTotals {
  level: string
  denied: number
}

export interface RuleTotals extends Counts {
  rule: string
  in_flight?: InFlight
  levels?: LevelTotals[]
  tiers?: (Omit<Counts, 'rate'> & { tier: string })[] // '' is without one; events of the stream have none
  latency_us?: Latency // events of the stream have none
}

export interface Upstream {
  requests: number
  errors: number
  error_share: number
  latency_us?: Latency
}

export interface Recorder {
  pending: number
  lost: number
  dropped: number
  sampling: number
  unavailable_since?: number
  error?: string
  complete_since?: number // the archive has lost what was before
}

export interface Summary extends Counts {
  from: number
  to: number
  window_s: number
  denied_share: number
  latency_us: Latency
  upstream?: Upstream
  store: { up: boolean; unavailable_since?: number; error?: string }
  not_loaded?: { since: number; error: string; problems?: RuleProblem[] } // the stored rules, so older ones stay in force
  recorder?: Recorder
  local?: boolean // of this instance alone: the archive that all share is unavailable
  priorities?: { priority: string; requests: number; denied: number }[] // missing if all are normal
  protect?: { cpu: number; memory: number; shed: Record<string, number> } // of the instance that answers
  adaptive?: { upstream: string; limit: number; in_flight: number; denied: number }[] // of the instance that answers
  reserved?: Reserved[] // likewise
  rules?: RuleTotals[]
}

// Reserved is what requests to one language model have reserved under a rule, and what they used since the start.
export interface Reserved {
  rule: string
  model?: string
  currency?: string // of a rule that counts money
  requests: number // that are open
  units: number
  excess: number
  used: number
  refunded: number
  display?: { units: string; excess: string; used: string; refunded: string }
}

// Point is a step of a series. A rule's has no latency and no upstream.
export interface Point extends Counts {
  t: number
  p50_us?: number
  p90_us?: number
  p99_us?: number
  upstream_requests?: number
  upstream_errors?: number
  upstream_p99_us?: number
  in_flight?: InFlight // of a rule
  levels?: LevelTotals[] // of a rule with levels
}

export interface Series {
  from: number
  to: number
  step_s: number
  points: Point[]
  in_flight?: InFlight // of a rule, in all
}

export interface TopEntry {
  key: string
  level?: string // of the rule that was asked for
  count: number
  error: number // by how much the count may be too high
}

export interface Top {
  total: number
  floor: number // whoever is not listed has no more
  sampling: number // at times, one key in so many was counted, as so many
  entries: TopEntry[]
}

// Ruled are the rules that did most of something over time.
export interface Ruled {
  from: number
  to: number
  step_s: number
  local?: boolean
  times: number[]
  rules: { rule: string; total: number; values: number[] }[]
  other: { total: number; values: number[] } // the rest of them
}

export interface RankedClient {
  key: string
  count: number
  error: number // by how much the count may be too high
  rules: { rule: string; count: number; shadow?: boolean; other?: boolean }[] // a shadow rule would have done so; another one has another key
  first_at: number // the start of the first slot with a count
  last_at: number
  values: number[] // one for each step
}

export interface RankedClients {
  from: number // where data begins, if that is later than what was asked for
  to: number
  step_s: number
  local?: boolean
  sampling: number
  floor: number // a client that is not listed has no more
  total: number
  clients: RankedClient[]
}

// mostOf is the highest value of all clients, so that their lines can be compared.
export const mostOf = (ranked: RankedClients): number => Math.max(...ranked.clients.flatMap((c) => c.values))

// ClientSeries is what rankings know of a client: in a slot in which it was not ranked, it has
// at most floor.
export interface ClientSeries {
  key: string
  from: number
  to: number
  step_s: number
  local?: boolean
  floor: number
  sampling: number
  points: { t: number; allowed: number; denied: number }[]
}

export interface Alert {
  id: string
  kind: string
  subject?: string
  rule?: string // which one denied most when it fired, or would have
  state: string
  value: number // when it fired
  current: number // as of updated_at
  threshold: number
  summary: string
  starts_at: string
  ends_at?: string
  quiet_since?: string // the condition does not hold any more, but the alert has not ended
  updated_at: string
  silenced?: boolean
  instance?: string // that noticed it
}

export interface Silence {
  id: string // of an alert, or a kind for all of it
  until: string
  author?: string
  comment?: string
}

export interface Alerts {
  active: Alert[]
  past: Alert[]
  silences: Silence[]
}

export interface Whoami {
  name: string
  scope: string
  clients?: boolean // may change the directory of clients
  via?: 'none' | 'token' | 'session' | 'proxy' // how the server knows
}

// pointOf is a second of the stream, as a series would have it. Without requests there
// is no latency: nothing was measured, which is not the same as nothing.
export function pointOf(s: Summary): Point {
  const { requests, rate, allowed, denied, shadow_denied, soft_denied, degraded_allowed, degraded_denied, blocked, unknown_client } = s
  const measured = requests > 0 ? { p50_us: s.latency_us.p50, p90_us: s.latency_us.p90, p99_us: s.latency_us.p99 } : {}
  return {
    t: Math.floor(s.from),
    requests, rate, allowed, denied, shadow_denied, soft_denied, degraded_allowed, degraded_denied, blocked, unknown_client,
    ...measured,
    upstream_requests: s.upstream?.requests ?? 0,
    upstream_errors: s.upstream?.errors ?? 0,
  }
}

// append adds a point to those before it, of which so many are kept. What was there
// already is replaced, and what comes too late is left out: a stream that begins again
// begins with the last second.
export function append(points: Point[], point: Point, kept: number): Point[] {
  const last = points.at(-1)
  if (last && last.t > point.t) return points
  const before = last?.t === point.t ? points.slice(0, -1) : points
  return [...before.slice(-(kept - 1)), point]
}

// merge puts two runs of points in order. Where both have one, the newer run's is taken.
export function merge(older: Point[], newer: Point[]): Point[] {
  const known = new Set(newer.map((p) => p.t))
  return [...older.filter((p) => !known.has(p.t)), ...newer].sort((a, b) => a.t - b.t)
}

// silenceOf is what keeps an alert from being sent: its own silence, or its kind's.
export function silenceOf(alert: Alert, silences: Silence[]): Silence | undefined {
  return silences.find((s) => s.id === alert.id) ?? silences.find((s) => s.id === alert.kind)
}

// spanOf is the time that an alert is about, with some before and after it, in Unix seconds.
const beside = 600
export function spanOf(alert: Alert, now: number): { from: number; to: number } {
  const at = (time: string) => Math.floor(Date.parse(time) / 1000)
  return { from: at(alert.starts_at) - beside, to: Math.floor(Math.min(now, alert.ends_at ? at(alert.ends_at) + beside : now)) }
}
