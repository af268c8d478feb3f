// What is behind the denials of a client, as far as a sample tells.

import type { Denial } from './api/limits'

export const recent = 300 // seconds

export interface Count {
  name: string // '' is not known
  n: number
}

export interface Behind {
  n: number // denials that were looked at
  endpoints: (Count & { rule: string; unknown?: boolean })[] // those with the most first
  addresses: Count[]
}

// behind counts the endpoints and addresses of the denials of the last minutes. A shadow rule denied
// nothing.
export function behind(denials: Denial[], now: number): Behind {
  const all = denials.filter((d) => !d.shadow && d.at > now - recent)
  const endpoints = new Map<string, Behind['endpoints'][number]>()
  const addresses = new Map<string, Count>()
  for (const d of all) {
    const name = [d.method, d.path].filter(Boolean).join(' ')
    tally(endpoints, JSON.stringify([d.rule, name, d.unknown_client]), { name, rule: d.rule, unknown: d.unknown_client, n: 0 })
    tally(addresses, d.address, { name: d.address, n: 0 })
  }
  return { n: all.length, endpoints: ordered(endpoints), addresses: ordered(addresses) }
}

function tally<C extends Count>(counts: Map<string, C>, at: string, fresh: C): void {
  const one = counts.get(at) ?? fresh
  one.n++
  counts.set(at, one)
}

const ordered = <C extends Count>(counts: Map<string, C>): C[] => [...counts.values()].sort((a, b) => b.n - a.n || (a.name < b.name ? -1 : 1))
