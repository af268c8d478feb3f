// Changes of the rules that say what they want, not what the document is to be: when
// somebody else was faster, they are simply made again.

import { Problem, type Client } from './api/client'
import type { List, Quota, Rule, Written } from './api/types'
import { addTo, removeFrom } from './rule'

const tries = 5

async function again<T>(make: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await make()
    } catch (error) {
      if (!(error instanceof Problem && error.is('version-conflict')) || left <= 1) throw error
    }
  }
}

// setBlocked puts a client on the block list, or takes it off. It returns the version.
export function setBlocked(api: Client, kind: keyof List, value: string, blocked: boolean): Promise<number> {
  return again(async () => {
    const document = await api.text('GET', '/v1/rules', { query: { format: 'yaml' } })
    const change = blocked ? addTo : removeFrom
    const text = change(document.value, 'block', kind, value)
    if (text === document.value) return document.version
    const summary = `${blocked ? 'block' : 'unblock'} ${kind} ${value}`.slice(0, 300)
    return (await api.json<Written>('PUT', '/v1/rules', { body: text, ifMatch: document.version, query: { summary } })).version
  })
}

// setOverride gives a client a limit of its own under a rule, or takes it away.
export function setOverride(api: Client, id: string, key: string, quota: Quota | null): Promise<number> {
  return again(async () => {
    const path = '/v1/rules/' + encodeURIComponent(id)
    const { value: rule, version } = await api.json<Rule>('GET', path)
    const overrides = Object.entries(rule.overrides ?? {}).filter(([name]) => name !== key)
    if (quota !== null) overrides.push([key, quota])
    const { overrides: _, ...rest } = rule
    const changed = overrides.length > 0 ? { ...rest, overrides: Object.fromEntries(overrides) } : rest
    return (await api.json<Written>('PUT', path, { body: changed, ifMatch: version })).version
  })
}
