// What happens right now, second by second.

import { events } from './api/stream'
import { share } from './shared'
import { append, merge, pointOf, type Point, type RuleTotals, type Series, type Summary } from './api/stats'
import { api, isAbsent } from './session.svelte'
import { Problem } from './api/client'

const kept = 300 // seconds
const keptRules = 120
const silence = 10_000 // milliseconds without a word after which a stream is taken for dead

export type State = 'starting' | 'live' | 'lost' | 'absent' | 'denied'

class Live {
  state = $state<State>('starting')
  latest = $state.raw<Summary | null>(null)
  points = $state.raw<Point[]>([])
  rules = $state.raw(new Map<string, number[]>()) // requests a second, the latest last
  counted = 0 // requests since the page was opened
}

export const live = new Live()

// told is whether the banner says already what went wrong: the store is unavailable. Then a page
// goes on to show what it knows.
export function told(error: unknown): boolean {
  return error instanceof Problem && error.is('store-unavailable') && live.latest?.store.up === false
}

// Told is what the tab with the stream tells the others.
interface Told {
  state: State
  summary?: Summary
}

const beat = 3000 // milliseconds between two words of the tab with the stream, whatever comes

let stop: (() => void) | null = null
let wanted = false

// start follows what happens until the page goes away. One of the tabs that somebody looks at
// has the stream, and tells the others: browsers open six connections to a server at most for
// all tabs together, and each stream costs the server. If nobody looks, there is none.
export function start(): void {
  if (!wanted) document.addEventListener('visibilitychange', turn)
  wanted = true
  turn()
}

function turn(): void {
  if (document.hidden) {
    stop?.()
    stop = null
  } else {
    stop ??= share<Told>('weir-stream', lead, hear)
  }
}

function hear({ state, summary }: Told): void {
  live.state = state
  if (summary) take(summary)
}

async function lead(tell: (told: Told) => void, signal: AbortSignal): Promise<void> {
  const speak = () => {
    if (live.state === 'live' || live.state === 'lost') tell({ state: live.state })
  }
  const beating = setInterval(speak, beat)
  try {
    await listen(tell, signal)
  } finally {
    clearInterval(beating)
  }
}

async function listen(tell: (told: Told) => void, signal: AbortSignal): Promise<void> {
  let wait = 500
  let failures = 0 // in a row; a server that ends a long stream is asked again, and nobody is alarmed
  while (!signal.aborted) {
    const stream = new AbortController()
    const end = () => stream.abort()
    signal.addEventListener('abort', end)
    let patience: ReturnType<typeof setTimeout> | undefined
    try {
      const response = await api.send('GET', '/v1/stats/stream', { signal: stream.signal, accept: 'text/event-stream' })
      patience = setTimeout(end, silence)
      for await (const data of events(response.body!)) {
        clearTimeout(patience)
        patience = setTimeout(end, silence)
        const told: Told = { state: 'live', summary: JSON.parse(data) as Summary }
        hear(told)
        tell(told)
        wait = 500
        failures = 0
      }
    } catch (error) {
      if (signal.aborted) return
      if (isAbsent(error)) {
        live.state = 'absent'
        return
      }
      if (error instanceof Problem && (error.status === 401 || error.status === 403)) {
        live.state = 'denied'
        stop?.()
        stop = null
        return
      }
    } finally {
      clearTimeout(patience)
      signal.removeEventListener('abort', end)
    }
    if (++failures > 1) {
      live.state = 'lost'
      tell({ state: 'lost' })
    }
    await new Promise((resolve) => setTimeout(resolve, wait))
    wait = Math.min(wait * 2, 10_000)
  }
}

// prime fills in the minutes in which the page did not listen. The last seconds are the
// stream's: a series has them before they are complete.
let priming = false
async function prime(): Promise<void> {
  if (priming) return
  priming = true
  try {
    const now = Math.floor(Date.now() / 1000)
    const { value } = await api.json<Series>('GET', '/v1/stats/series', { query: { from: now - kept, to: now, step: 1 } })
    if (value.step_s !== 1) return
    const newest = live.points.at(-1)?.t ?? now
    live.points = merge(value.points.filter((p) => p.t < newest), live.points).slice(-kept)
  } catch {
    // Then the chart begins empty.
  } finally {
    priming = false
  }
}

const primed = new Set<string>()

// primeRules fills in the last minutes of some rules, a few calls at a time.
export async function primeRules(ids: string[]): Promise<void> {
  const waiting = ids.filter((id) => !primed.has(id)).slice(0, 24)
  waiting.forEach((id) => primed.add(id))
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        const now = Math.floor(Date.now() / 1000)
        const { value } = await api.json<Series>('GET', '/v1/stats/series', { query: { from: now - keptRules, to: now, step: 1, rule: id } })
        const before = value.points.map((p) => p.rate)
        const since = live.rules.get(id) ?? []
        const rates = [...before.slice(0, before.length - since.length), ...since].slice(-keptRules)
        if (rates.some((rate) => rate > 0)) live.rules = new Map(live.rules).set(id, rates)
      } catch {
        // Then the line begins now.
      }
    }
  }
  await Promise.all([work(), work(), work()])
}

function take(s: Summary): void {
  const before = live.points
  // Seconds that were missed are in the series.
  if (Math.floor(s.from) > (before.at(-1)?.t ?? 0) + 1) void prime()
  live.latest = s
  live.counted += s.requests
  live.points = append(before, pointOf(s), kept)
  // A second that was there already has been counted.
  if (live.points !== before && live.points.at(-1)!.t !== before.at(-1)?.t) tally(s.rules ?? [])
}

// tally keeps the last minutes of every rule that is spoken of.
function tally(totals: RuleTotals[]): void {
  const next = new Map<string, number[]>()
  const now = new Map(totals.map((r) => [r.rule, r.rate]))
  for (const id of new Set([...live.rules.keys(), ...now.keys()])) {
    const rates = [...(live.rules.get(id) ?? []), now.get(id) ?? 0].slice(-keptRules)
    if (rates.some((rate) => rate > 0)) next.set(id, rates)
  }
  live.rules = next
}
