// A rule as the form and the lists show it. Its text is the server's business: see
// draft.svelte.ts.

import type { List, Quota, Rule, RuleProblem, Words } from './api/types'
import { count, money } from './format'
import { denyFields, matchFields, options, ruleFields } from './fields'

export const algorithms = ['token_bucket', 'fixed_window', 'sliding_window', 'sliding_buckets', 'sliding_log', 'leaky_bucket']

// denies is whether rules in a mode deny requests.
export const denies = (mode: string | undefined): boolean => mode !== 'shadow' && mode !== 'soft'

// usualFailure is what a rule does while the store is unavailable if it says nothing: budgets keep counting.
export const usualFailure = (rule: Rule): string => ((rule.tokens ?? rule.unit ?? rule.count) ? 'local' : 'open')

// failure is the policy of a rule while the store is unavailable, in a word or as people read it: "local 1m, limit 10/1m, then closed".
export function failure(rule: Rule): string {
  const policy = rule.on_failure ?? usualFailure(rule)
  if (typeof policy === 'string') return policy
  return [`local${policy.local === undefined ? '' : ' ' + policy.local}`, policy.limit && `limit ${policy.limit}`, policy.then && `then ${policy.then}`].filter(Boolean).join(', ')
}

// would is how many requests a rule that denies nothing would have denied.
export const would = (of: { shadow_denied: number; soft_denied: number }): number => of.shadow_denied + of.soft_denied

// set is a rule with one field changed. Without a value the field goes, and what is empty
// then.
export function set(rule: Rule, path: string[], value: unknown): Rule {
  const [name = '', ...rest] = path
  const fields = rule as unknown as Record<string, unknown>
  let now = value
  if (rest.length > 0) {
    const inner = fields[name]
    now = set((isObject(inner) ? inner : {}) as never, rest, value)
    if (Object.keys(now as object).length === 0) now = undefined
  }
  const entries = Object.entries(fields).filter(([other]) => other !== name || now !== undefined)
  const at = entries.findIndex(([other]) => other === name)
  if (at >= 0) entries[at] = [name, now]
  else if (now !== undefined) entries.push([name, now])
  return Object.fromEntries(entries) as unknown as Rule
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

// words writes one value or a list as people type them.
export function words(value: Words | undefined): string {
  return value === undefined || value === null ? '' : Array.isArray(value) ? value.join(', ') : String(value)
}

// fromWords is the other way round; undefined for nothing.
export function fromWords(text: string): Words | undefined {
  const all = text.split(',').map((word) => word.trim()).filter((word) => word !== '')
  return all.length === 0 ? undefined : all.length === 1 ? all[0] : all
}

// limits are the limits of a rule or a quota, as people type them.
export function limits(of: { limit?: string; limits?: string[] }): string {
  return words(of.limits ?? of.limit)
}

// limitList are the same, each by itself.
export function limitList(of: { limit?: string; limits?: string[] }): string[] {
  return of.limits ?? (of.limit === undefined ? [] : [of.limit])
}

// currencyOf is the currency of a limit, whose millionths are its units; '' for none.
export function currencyOf(limit: string | undefined): string {
  const [, sign, code = ''] = /^\s*(?:(\$)|[\d.]+([a-z]{3})\s*\/)/i.exec(limit ?? '') ?? []
  return sign ? 'usd' : code.toLowerCase()
}

// unitsOf writes units of a rule as people read them.
export function unitsOf(rule: Rule | null): (n: number) => string {
  const price = rule?.tokens?.price
  const currency = price && price !== 'none' ? price : rule && limitList(rule).map(currencyOf).find(Boolean)
  return currency ? (n) => money(currency, n) : count
}

// isCalendar is whether a limit of a rule or a quota goes by the calendar.
export function isCalendar(limit: string, of: { zone?: string; starts?: string | number }): boolean {
  const unit = /\/\s*(?:1\s*)?(h|hour|d|day|w|week|month|year)\b/.exec(limit)?.[1]
  if (unit === 'month' || unit === 'year' || (unit && currencyOf(limit))) return true
  const start = String(of.starts ?? '')
  return unit !== undefined && (of.zone !== undefined || (unit[0] === 'd' && start.includes(':')) || (unit[0] === 'w' && /^[a-z]+$/.test(start)))
}

// algorithmOf is what a rule counts by, if it does not say: quotas of the calendar are
// fixed windows.
export function algorithmOf(rule: Rule): string {
  const all = limitList(rule)
  return rule.algorithm ?? (all.length > 0 && all.every((limit) => isCalendar(limit, rule)) ? 'fixed_window' : 'token_bucket')
}

// calendar writes zone and start: " zone Asia/Shanghai starts 15".
export function calendar(of: { zone?: string; starts?: string | number }): string {
  return (of.zone === undefined ? '' : ' zone ' + of.zone) + (of.starts === undefined ? '' : ' starts ' + of.starts)
}

// quota writes a tier's or a client's limit: "1000/1m burst 2000", "50/1s, 10000/1d",
// "10000/month starts 15", "100/1m concurrency 5 priority high"; and limits of levels as JSON.
export function quota(of: Quota): string {
  if (typeof of === 'string' || Array.isArray(of)) return words(of)
  if (of.levels) return JSON.stringify(of)
  return [limits(of), ...options.flatMap((name) => (of[name] === undefined ? [] : [name, of[name]]))].join(' ').trim()
}

const lastOption = new RegExp(`(?:^|\\s+)(${options.join('|')})\\s+(\\S+)\\s*$`)

// fromQuota is the other way round.
export function fromQuota(text: string): Quota {
  try {
    const of: unknown = JSON.parse(text)
    if (typeof of === 'object' && of) return of as Quota
  } catch {
    // it is no JSON, as usual
  }
  const found = lastOption.exec(text)
  if (!found) return fromWords(text) ?? ''
  const [, name = '', value = ''] = found
  const rest = fromQuota(text.slice(0, found.index))
  return { ...(typeof rest !== 'string' ? (Array.isArray(rest) ? { limits: rest } : rest) : rest && { limit: rest }), [name]: Number(value) || value } as Quota
}

// times is a limit so many times as high, and at least 1: "100/1m" and 2 are "200/1m". What
// is no number stays as it is.
export function times(limit: string, factor: number): string {
  const whole = (n: string) => String(Math.max(1, Math.round(Number(n) * factor)))
  const amount = (n: string) => String(Math.max(1, Math.round(Number(n) * 1e6 * factor)) / 1e6)
  return limit.replace(/(^|,\s*|\bburst\s+)([\d.]+)([a-z]{3}(?=\/))?/gi, (_, before: string, n: string, currency = '') => before + (currency ? amount(n) : whole(n)) + currency)
}

// applies says to which requests a rule applies; '' to all of them.
export function applies(rule: Rule): string {
  const m = rule.match ?? {}
  const attributes = Object.entries(m.attributes ?? {}).map(([name, value]) => `${name}=${words(value)}`)
  return [words(m.method), words(m.host), words(m.path), ...attributes].filter(Boolean).join(' ')
}

// fieldOf tells in which field of the form a problem is shown; '' for none.
export function fieldOf(problem: RuleProblem): string {
  return fieldAt((problem.field ?? '').split('.'))
}

// fieldAt is the same for where a value stands in a rule.
export function fieldAt([outer = '', inner = '']: string[]): string {
  if (outer === 'match' || outer === 'deny') return within[outer].includes(inner) ? inner : outer
  return outer === 'limits' ? 'limit' : (ruleFields as readonly string[]).includes(outer) ? outer : ''
}

const within: Record<'match' | 'deny', readonly string[]> = { match: matchFields, deny: denyFields }

// offsetOf is where a line and a column are in a text.
export function offsetOf(source: string, line: number, column: number): number {
  let at = 0
  for (let i = 1; i < line; i++) {
    const end = source.indexOf('\n', at)
    if (end < 0) return source.length
    at = end + 1
  }
  return Math.min(source.length, at + column - 1)
}

// entries are who is on a list, in its order.
export function entries(list: List | undefined): { kind: keyof List; value: string }[] {
  const all = (kind: keyof List) => [list?.[kind] ?? []].flat().map((value) => ({ kind, value: String(value) }))
  return [...all('ip'), ...all('user'), ...all('api_key')]
}

// isListed is whether a list has exactly this value.
export function isListed(list: List | undefined, kind: keyof List, value: string): boolean {
  return entries(list).some((entry) => entry.kind === kind && entry.value === value)
}
