// Generated from openapi.yaml; do not edit. To write it again: go test ./test/sdk -update

import type { Fields } from './decode.js'

/** A request. A rule that needs a field which is left out does not apply. */
export interface CheckRequest {
  /** IP address of the client, without a port */
  ip?: string | undefined
  user?: string | undefined
  /** in plain text; weir hashes it before it stores or logs it */
  apiKey?: string | undefined
  tier?: string | undefined
  /** how important the request is; default the priority that the rules give it */
  priority?: string | undefined
  method?: string | undefined
  host?: string | undefined
  /** escaped, as it was sent; it begins with a slash, and a query is removed */
  path?: string | undefined
  headers?: Record<string, string> | undefined
  cookies?: Record<string, string> | undefined
  query?: Record<string, string> | undefined
  attributes?: Record<string, string> | undefined
  /** One number for every rule, where 0 uses the cost of each rule; or numbers by unit, for the rules that have this unit. Other rules then have their own cost. A unit that no rule has is an error. */
  cost?: number | Record<string, number> | undefined
}

/** of a rule that counts money, whose numbers are millionths: these for people; absent for other rules */
export interface Display {
  /** the limit as a rule has it, such as 20usd/day */
  policy: string
  /** such as $0.0125 */
  cost: string
  /** such as $20.00; absent, as remaining, if the store was unavailable */
  limit: string
  remaining: string
  /** of a denied request: what it lacks and others have only reserved */
  reserved: string
}

export const displayFields: Fields = {
  policy: { name: 'policy', of: 'string', required: true },
  cost: { name: 'cost', of: 'string', required: true },
  limit: { name: 'limit', of: 'string', required: false },
  remaining: { name: 'remaining', of: 'string', required: false },
  reserved: { name: 'reserved', of: 'string', required: false },
}

/** the temporary override that set the limit; absent if the limit comes from the rule */
export interface Override {
  id: string
  endsAt: Date
}

export const overrideFields: Fields = {
  id: { name: 'id', of: 'string', required: true },
  ends_at: { name: 'endsAt', of: 'time', required: true },
}

/** The result of one limit. */
export interface Result {
  rule: string
  /** the level at which it counts, such as team; absent if the rule has no levels */
  level: string
  /** the key of the client */
  key: string
  algorithm: string
  /** the limit as written in a rule, such as 100/1m or concurrency 20 */
  policy: string
  allowed: boolean
  /** the rule is in shadow or soft mode and denies nothing */
  shadow: boolean
  /** the rule is in soft mode: it denies nothing, but the client is to be told */
  soft: boolean
  /** false if the store was unavailable; the numbers are then meaningless */
  asked: boolean
  /** the store was unavailable for this limit, and the instance decided by itself; absent otherwise */
  local: boolean
  cost: number
  /** with charge always, units of the cost that were not charged, because the client is too deep in debt; absent if none */
  excess: number
  /** units that are left for requests with a higher priority, and are not among the remaining ones; absent if none */
  leave: number
  limit: number
  remaining: number
  /** of a denied request: units that it lacks and that others have only reserved; absent if what it lacks is used up */
  reserved: number
  /** units that other instances have on lease, as last known: neither used nor remaining, because they may be spent or returned; absent if none */
  leased: number
  resetAt: number
  resetAfterMs: number
  retryAfterMs: number
  delayMs: number
  display?: Display
  /** a penalty of the rule runs, so the limit denies */
  penalty: boolean
  /** the highest threshold of the rule that the usage has reached, in percent; absent if none */
  warning: number
  /** the temporary override that set the limit; absent if the limit comes from the rule */
  override?: Override
}

export const resultFields: Fields = {
  rule: { name: 'rule', of: 'string', required: true },
  level: { name: 'level', of: 'string', required: false },
  key: { name: 'key', of: 'string', required: true },
  algorithm: { name: 'algorithm', of: 'string', required: true },
  policy: { name: 'policy', of: 'string', required: true },
  allowed: { name: 'allowed', of: 'boolean', required: true },
  shadow: { name: 'shadow', of: 'boolean', required: false },
  soft: { name: 'soft', of: 'boolean', required: false },
  asked: { name: 'asked', of: 'boolean', required: true },
  local: { name: 'local', of: 'boolean', required: false },
  cost: { name: 'cost', of: 'number', required: true },
  excess: { name: 'excess', of: 'number', required: false },
  leave: { name: 'leave', of: 'number', required: false },
  limit: { name: 'limit', of: 'number', required: true },
  remaining: { name: 'remaining', of: 'number', required: true },
  reserved: { name: 'reserved', of: 'number', required: false },
  leased: { name: 'leased', of: 'number', required: false },
  reset_at: { name: 'resetAt', of: 'number', required: true },
  reset_after_ms: { name: 'resetAfterMs', of: 'number', required: true },
  retry_after_ms: { name: 'retryAfterMs', of: 'number', required: false },
  delay_ms: { name: 'delayMs', of: 'number', required: true },
  display: { name: 'display', of: displayFields, required: false },
  penalty: { name: 'penalty', of: 'boolean', required: false },
  warning: { name: 'warning', of: 'number', required: false },
  override: { name: 'override', of: overrideFields, required: false },
}

/** The numbers are those of one limit: for an allowed request the limit with the fewest units left, for a denied request the first limit in the document that denies. They are 0 if no limit was checked. */
export interface Answer {
  allowed: boolean
  reason: string
  /** of a denial: HTTP status for the end user */
  status: number
  /** the rule of that limit */
  rule: string
  /** the level of that limit, such as team; absent if the rule has no levels */
  level: string
  /** of a denial: application code of the rule */
  code: number
  /** of a denial: for the end user */
  message: string
  limit: number
  remaining: number
  /** of a denied request: units that it lacks and that others have only reserved, so that it may come again after a second; absent if what it lacks is used up */
  reserved: number
  /** Unix seconds by the store's clock, rounded up */
  resetAt: number
  resetAfterMs: number
  /** the longest of all limits that deny, and a second for requests in flight, which usually end sooner than their places expire; 0 if allowed; also 0 if waiting does not help */
  retryAfterMs: number
  /** delay the request for this long */
  delayMs: number
  display?: Display
  /** of a reservation that charged something */
  hold: string
  /** by the store's clock */
  holdExpiresAt?: Date
  /** of a reservation that was charged without a hold, because there are too many; what was charged stays */
  unheld: boolean
  /** of the request; absent if it is normal */
  priority: string
  /** the store was unavailable, or the rules or the clients are not loaded yet */
  degraded: boolean
  /** of the rules */
  version: number
  results: Result[]
}

export const answerFields: Fields = {
  allowed: { name: 'allowed', of: 'boolean', required: true },
  reason: { name: 'reason', of: 'string', required: true },
  status: { name: 'status', of: 'number', required: false },
  rule: { name: 'rule', of: 'string', required: false },
  level: { name: 'level', of: 'string', required: false },
  code: { name: 'code', of: 'number', required: false },
  message: { name: 'message', of: 'string', required: false },
  limit: { name: 'limit', of: 'number', required: true },
  remaining: { name: 'remaining', of: 'number', required: true },
  reserved: { name: 'reserved', of: 'number', required: false },
  reset_at: { name: 'resetAt', of: 'number', required: true },
  reset_after_ms: { name: 'resetAfterMs', of: 'number', required: true },
  retry_after_ms: { name: 'retryAfterMs', of: 'number', required: false },
  delay_ms: { name: 'delayMs', of: 'number', required: true },
  display: { name: 'display', of: displayFields, required: false },
  hold: { name: 'hold', of: 'string', required: false },
  hold_expires_at: { name: 'holdExpiresAt', of: 'time', required: false },
  unheld: { name: 'unheld', of: 'boolean', required: false },
  priority: { name: 'priority', of: 'string', required: false },
  degraded: { name: 'degraded', of: 'boolean', required: true },
  version: { name: 'version', of: 'number', required: true },
  results: { name: 'results', of: [resultFields], required: true },
}

export interface Part {
  rule: string
  unit: string
  shadow: boolean
  reserved: number
  /** 0 as long as the hold is open */
  used: number
  /** units of what was used that were not charged, because the client is too deep in debt */
  excess: number
}

export const partFields: Fields = {
  rule: { name: 'rule', of: 'string', required: true },
  unit: { name: 'unit', of: 'string', required: false },
  shadow: { name: 'shadow', of: 'boolean', required: false },
  reserved: { name: 'reserved', of: 'number', required: true },
  used: { name: 'used', of: 'number', required: true },
  excess: { name: 'excess', of: 'number', required: false },
}

/** What has become of a hold. */
export interface Settled {
  state: string
  /** of an open hold */
  expiresAt?: Date
  /** One for each rule; none if it is pending. */
  parts: Part[]
}

export const settledFields: Fields = {
  state: { name: 'state', of: 'string', required: true },
  expires_at: { name: 'expiresAt', of: 'time', required: false },
  parts: { name: 'parts', of: [partFields], required: true },
}

/** An error, in the format of RFC 9457. */
export interface Problem {
  type: string
  title: string
  status: number
  /** what is wrong, and the remedy */
  detail: string
  /** Which detail it is, if the type has several. Not every detail has a code. */
  code: string
  /** field of the body or the query */
  field: string
  requestId: string
}

export const problemFields: Fields = {
  type: { name: 'type', of: 'string', required: true },
  title: { name: 'title', of: 'string', required: true },
  status: { name: 'status', of: 'number', required: true },
  detail: { name: 'detail', of: 'string', required: true },
  code: { name: 'code', of: 'string', required: false },
  field: { name: 'field', of: 'string', required: false },
  request_id: { name: 'requestId', of: 'string', required: false },
}

export interface CounterKey {
  /** at most 256 bytes */
  name: string
  /** on a Redis cluster, counters of one group change together */
  group?: string | undefined
  /** the calendar window after which it restarts from zero; default ever */
  window?: string | undefined
  /** IANA name of the time zone of the calendar; default UTC */
  zone?: string | undefined
  /** counts different members, each once in a window: exactly up to 512, then with a standard error of 0.81 %. Another counter than one of the same name without */
  distinct?: boolean | undefined
}

export interface CounterDelta {
  /** at most 256 bytes */
  name: string
  /** on a Redis cluster, counters of one group change together */
  group?: string | undefined
  /** the calendar window after which it restarts from zero; default ever */
  window?: string | undefined
  /** IANA name of the time zone of the calendar; default UTC */
  zone?: string | undefined
  /** counts different members, each once in a window: exactly up to 512, then with a standard error of 0.81 %. Another counter than one of the same name without */
  distinct?: boolean | undefined
  /** may be negative; default 1 */
  by?: number | undefined
  /** the members to add to a distinct counter, instead of by; at most 256 for all counters together */
  members?: string[] | undefined
}

export interface CounterSetting {
  /** at most 256 bytes */
  name: string
  /** on a Redis cluster, counters of one group change together */
  group?: string | undefined
  /** the calendar window after which it restarts from zero; default ever */
  window?: string | undefined
  /** IANA name of the time zone of the calendar; default UTC */
  zone?: string | undefined
  /** counts different members, each once in a window: exactly up to 512, then with a standard error of 0.81 %. Another counter than one of the same name without */
  distinct?: boolean | undefined
  value: number
}

export interface Sample {
  /** at most 256 bytes */
  name: string
  /** on a Redis cluster, distributions of one group change together */
  group?: string | undefined
  /** the calendar window after which it restarts from zero; default ever */
  window?: string | undefined
  /** IANA name of the time zone of the calendar; default UTC */
  zone?: string | undefined
  /** at most 1000 for all distributions together */
  values: number[]
}

export interface CounterValue {
  value: number
}

export const counterValueFields: Fields = {
  value: { name: 'value', of: 'decimal', required: true },
}

export interface CountersAnswer {
  counters: CounterValue[]
}

export const countersAnswerFields: Fields = {
  counters: { name: 'counters', of: [counterValueFields], required: true },
}

export interface PreviousValue {
  previous: number
}

export const previousValueFields: Fields = {
  previous: { name: 'previous', of: 'decimal', required: true },
}

export interface SetAnswer {
  counters: PreviousValue[]
}

export const setAnswerFields: Fields = {
  counters: { name: 'counters', of: [previousValueFields], required: true },
}

export interface ObserveAnswer {
  /** number of values */
  observed: number
}

export const observeAnswerFields: Fields = {
  observed: { name: 'observed', of: 'number', required: true },
}

export interface CounterPoint {
  /** start of the window; absent without a window */
  start?: Date
  value: number
}

export const counterPointFields: Fields = {
  start: { name: 'start', of: 'time', required: false },
  value: { name: 'value', of: 'decimal', required: true },
}

export interface CounterHistory {
  points: CounterPoint[]
}

export const counterHistoryFields: Fields = {
  points: { name: 'points', of: [counterPointFields], required: true },
}

export interface CounterHistoryAnswer {
  counters: CounterHistory[]
}

export const counterHistoryAnswerFields: Fields = {
  counters: { name: 'counters', of: [counterHistoryFields], required: true },
}

/** A distribution in figures: exact, except that percentiles are at most 1.6 % off. Without values, there is only the count. */
export interface Percentiles {
  /** start of the window; absent without a window */
  start?: Date
  count: number
  sum: number
  mean: number
  min: number
  max: number
  p50: number
  p95: number
  p99: number
}

export const percentilesFields: Fields = {
  start: { name: 'start', of: 'time', required: false },
  count: { name: 'count', of: 'number', required: true },
  sum: { name: 'sum', of: 'decimal', required: false },
  mean: { name: 'mean', of: 'decimal', required: false },
  min: { name: 'min', of: 'decimal', required: false },
  max: { name: 'max', of: 'decimal', required: false },
  p50: { name: 'p50', of: 'decimal', required: false },
  p95: { name: 'p95', of: 'decimal', required: false },
  p99: { name: 'p99', of: 'decimal', required: false },
}

export interface Distribution {
  points: Percentiles[]
  merged: Percentiles
}

export const distributionFields: Fields = {
  points: { name: 'points', of: [percentilesFields], required: true },
  merged: { name: 'merged', of: percentilesFields, required: true },
}

export interface DistributionsAnswer {
  distributions: Distribution[]
}

export const distributionsAnswerFields: Fields = {
  distributions: { name: 'distributions', of: [distributionFields], required: true },
}
