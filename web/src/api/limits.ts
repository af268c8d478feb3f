// What the HTTP API tells of how limits are used, and of overrides. Times are Unix seconds,
// except those of overrides, which are RFC 3339.

import type { Slot } from '../chart'
import type { CheckAnswer, Rule, RuleProblem } from './types'

// Usage is how many units of a rule's limits were in use after requests.
export interface Usage {
  rule: string
  from: number
  to: number
  local?: boolean
  limits: LimitUsage[]
}

export interface LimitUsage {
  tier: string // '' is for requests without one
  period_s: number
  limit?: number // in force now; 0 if there is none
  requests: number
  denied: number
  p50: number
  p90: number
  p99: number
  max: number
  slots: Slot[]
}

// Holds is what became of a rule's holds.
export interface Holds extends HoldCounts {
  step_s: number
  ratio?: { total: number; p50: number; p90: number; p99: number } // used of reserved
  points: (HoldCounts & { t: number })[]
}

export interface HoldCounts {
  opened: number
  settled: number
  cancelled: number
  overruns: number
  charges: number
  crowded?: number // denied, because too many holds were open
  reserved_units: number // of settled holds
  used_units: number
  charged_units: number // without a hold
}

// Leases is how the instance that answers has decided since its start, under limits of which it leases units.
export interface Leases {
  messages: number // to the store
  keys: number // with a lease now
  rules: RuleLease[]
}

export interface RuleLease {
  rule: string
  local: number // allowed without asking the store
  denied: number // without asking the store
  asked: number
  leased: number // units that it can spend now
  returned: number
  lost: number // units that the store charged although they were not spent
}

// Spend is what rules have charged in money.
export interface Spend {
  from: string // days in UTC
  to: string
  local?: boolean
  lines: SpendLine[]
}

export interface SpendLine {
  rule: string
  level?: string
  client?: string // (other) for those that are not counted apart
  model?: string
  day?: string
  requests: number
  currency: string
  micros: number // millionths of it
  display: string
  input_tokens: number
  output_tokens: number
}

// Suggest is which limits would have denied a share of the requests.
export interface Suggest {
  rule: string
  from: number
  to: number
  suggestions: Suggestion[]
}

export interface Suggestion {
  tier: string
  period_s: number
  requests: number
  denied: number
  data_s: number // length of the data
  targets: Target[] // without those for which the data is too short
}

export interface Target {
  share: number
  units: number
  limit?: string // as a rule has it, with its burst
  above: boolean // more than that is needed; nobody knows how much
}

export interface Denial {
  at: number
  key: string
  rule: string
  method: string
  path: string // the pattern of the rule, never what the client sent
  address: string // '' if it is not known
  tier: string
  cost: number
  shadow: boolean
  blocked: boolean
  unknown_client?: boolean
  degraded?: boolean // because the store was unavailable
  crowded?: boolean // because of too many open holds
  instance: string
}

export interface Denials {
  local?: boolean
  denials: Denial[]
}

export interface Override {
  id: string
  rule: string
  key: string
  limits: string[]
  burst?: number
  zone?: string
  starts?: string
  reason: string
  author: string
  created_at: string
  ends_at: string
  state: 'active' | 'expired' | 'ended' | 'replaced'
  ended_at?: string
  ended_by?: string
  no_effect?: string // of an active one: why it has none
  no_effect_code?: string
}

export interface Overrides {
  overrides: Override[]
}

// Formatted is a draft of a rule as text and as JSON.
export interface Formatted {
  source: string
  rule: Rule | null // null while the text cannot be read
  problems: RuleProblem[]
}

// Tried is what a check would answer with a draft, and without it.
export interface Tried {
  draft: CheckAnswer
  in_force: CheckAnswer
}

export interface Replayed {
  draft?: Report
  in_force: Report
}

export interface Report {
  lines: number
  bad_lines: number
  requests: number
  allowed: number
  denied: number
  blocked: number
  rules: { id: string; mode: string; applied: number; denied: number; denied_clients: number }[]
  top_denied: { rule: string; client: string; denied: number }[]
  notes?: string[]
}

// Warnings are clients that have reached a threshold of a rule, the newest first.
export interface Warnings {
  local?: boolean
  warnings: { at: number; key: string; rule: string; policy: string; threshold: number; used: number; limit: number; reset_at: number; instance: string; display?: { used: string; limit: string } }[]
}
