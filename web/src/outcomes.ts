// How an outcome looks and what it is called, everywhere on the page: a colour, and a
// pattern for who does not see the colour.

import type { Counts } from './api/stats'
import { t } from './words/words.svelte'

export type Pattern = 'solid' | 'rising' | 'falling' | 'dots' | 'lying' | 'standing' | 'crossed' | 'squares'

export interface Line {
  label: string
  color: string // the name of a CSS variable
  pattern?: Pattern
}

export type Outcome = Exclude<keyof Counts, 'requests' | 'rate'>

const looks = {
  allowed: ['allowed', 'solid', 'outcome.allowed'],
  degraded_allowed: ['degraded', 'lying', 'outcome.degraded_allowed'],
  shadow_denied: ['shadow', 'dots', 'outcome.shadow'],
  soft_denied: ['hinted', 'falling', 'outcome.soft'],
  denied: ['denied', 'rising', 'outcome.denied'],
  blocked: ['blocked', 'crossed', 'outcome.blocked'],
  unknown_client: ['blocked', 'squares', 'outcome.unknown_client'],
  degraded_denied: ['failed', 'standing', 'outcome.degraded_denied'],
} as const satisfies Record<Outcome, readonly [string, Pattern, string]>

// outcomes in the order in which they are stacked: those that passed below those that did not.
export const outcomes = Object.keys(looks) as Outcome[]

export function lineOf(outcome: Outcome): Line {
  const [color, pattern, word] = looks[outcome]
  return { label: t(word), color, pattern }
}

// compared is how the nth of several things looks that are not outcomes, such as rules; what
// is left over has a colour of its own.
const patterns: Pattern[] = ['solid', 'rising', 'dots', 'falling', 'lying']
export function compared(label: string, n: number): Line {
  return { label, color: `series-${(n % 5) + 1}`, pattern: patterns[n % 5]! }
}
export function rest(label: string): Line {
  return { label, color: 'series-rest', pattern: 'standing' }
}
