// Changes of the rules that say what they want, not what the document is to be: when
// somebody else was faster, they are simply made again.

import { Problem, type Client } from './api/client'
import type { List, Quota, Rule, Written } from './api/types'

const tries = 5

export type ListName = 'exempt' | 'block'

// setListed puts a client on a list, or takes it off. It returns the version.
export async function setListed(api: Client, list: ListName, kind: keyof List, value: string, listed: boolean): Promise<number> {
  return (await api.json<Written>(listed ? 'PUT' : 'DELETE', '/v1/' + list, { query: { [kind]: value } })).version
}

// amend changes a rule. It returns the version.
export async function amend(api: Client, id: string, change: (rule: Rule) => Rule): Promise<number> {
  const path = '/v1/rules/' + encodeURIComponent(id)
  for (let left = tries; ; left--) {
    const { value: rule, version } = await api.json<Rule>('GET', path)
    try {
      return (await api.json<Written>('PUT', path, { body: change(rule), ifMatch: version })).version
    } catch (error) {
      if (!(error instanceof Problem && error.is('version-conflict')) || left <= 1) throw error
    }
  }
}

// setOverride gives a client a limit of its own under a rule for good, or takes it away.
export function setOverride(api: Client, id: string, key: string, quota: Quota | null): Promise<number> {
  return amend(api, id, (rule) => {
    const overrides = Object.entries(rule.overrides ?? {}).filter(([name]) => name !== key)
    if (quota !== null) overrides.push([key, quota])
    const { overrides: _, ...rest } = rule
    return overrides.length > 0 ? { ...rest, overrides: Object.fromEntries(overrides) } : rest
  })
}
