// A copy of a rule with another limit, which only counts: what would it deny?

import type { Client } from './api/client'
import { Problem } from './api/client'
import type { LimitUsage } from './api/limits'
import type { Quota, Rule } from './api/types'
import { amend } from './edits'
import { period } from './format'
import { options } from './fields'
import { currencyOf, isCalendar, limitList } from './rule'

// isBucket is whether the limit of a rule with such a period is a bucket.
export const isBucket = (rule: Rule, seconds: number): boolean =>
  ['token_bucket', 'leaky_bucket'].includes(rule.algorithm ?? 'token_bucket') && !limitList(rule).some((limit) => isOf(limit, seconds) && isCalendar(limit, rule)) && seconds < period('1/month') / 1e6

const isOf = (limit: string, seconds: number): boolean => Math.abs(period(limit) / 1e6 - seconds) < 1e-6

// trialOf is the copy. The units are what a suggestion says: of a bucket its capacity at the
// rate of now, and of everything else the limit itself.
export function trialOf(rule: Rule, about: Pick<LimitUsage, 'tier' | 'period_s'>, units: number): Rule {
  const copy: Rule = { ...rule, id: rule.id.slice(0, 90) + '-trial', mode: 'shadow' }
  const tier = about.tier === '' ? undefined : rule.tiers?.[about.tier]
  if (tier !== undefined) {
    copy.tiers = { ...rule.tiers, [about.tier]: changed(asQuota(tier), rule, about.period_s, units) }
  } else {
    const { limit: _, limits: __, burst: ___, ...rest } = copy
    return { ...rest, ...(changed(asQuota(rule), rule, about.period_s, units) as object) } as Rule
  }
  return copy
}

interface Limits {
  limit?: string
  limits?: string[]
  burst?: number
  zone?: string
  starts?: string | number
  concurrency?: number
  priority?: string
}

function asQuota(of: Quota | Rule): Limits {
  if (typeof of === 'string') return { limit: of }
  if (Array.isArray(of)) return { limits: of }
  return Object.fromEntries((['limit', 'limits', ...options] as const).flatMap((name) => (of[name] === undefined ? [] : [[name, of[name]]])))
}

function changed(of: Limits, rule: Rule, seconds: number, units: number): Limits {
  if (isBucket(rule, seconds)) return { ...of, burst: units }
  const all = limitList(of).map((limit) => (isOf(limit, seconds) ? limit.replace(/^[^/]+/, currencyOf(limit) ? units / 1e6 + currencyOf(limit) : String(units)) : limit))
  return of.limits ? { ...of, limits: all } : { ...of, limit: all[0]! }
}

// tryOut adds the copy, or replaces an earlier one. It returns its id.
export async function tryOut(api: Client, copy: Rule): Promise<string> {
  try {
    await api.json('POST', '/v1/rules', { body: copy })
  } catch (error) {
    if (!(error instanceof Problem && error.status === 409)) throw error
    await amend(api, copy.id, () => copy)
  }
  return copy.id
}
