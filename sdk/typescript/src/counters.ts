import {
  counterHistoryAnswerFields,
  countersAnswerFields,
  distributionsAnswerFields,
  observeAnswerFields,
  setAnswerFields,
  type CounterDelta,
  type CounterHistoryAnswer,
  type CounterKey,
  type CounterPoint,
  type CountersAnswer,
  type CounterSetting,
  type Distribution,
  type DistributionsAnswer,
  type Sample,
  type SetAnswer,
} from './api.js'
import type { Fields } from './decode.js'
import { WeirError } from './errors.js'
import { defined, type CallOptions } from './options.js'

type Ask = <T>(path: string, message: object | undefined, fields: Fields, call?: CallOptions) => Promise<T>

/** What all counters of one call that reads have in common. */
export type CounterOptions = Omit<CounterKey, 'name'> & CallOptions

/**
 * Counts in weir. Answers have the order of what was asked. An amount is a number with at most six
 * decimals; what is sent is rounded to them.
 */
export class Counters {
  readonly #ask: Ask

  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** Adds to counters, 1 by default, or members to distinct ones. All are changed, or none. Returns the new values. */
  async add(deltas: CounterDelta | CounterDelta[], call?: CallOptions): Promise<number[]> {
    const add = list(deltas).map((each) => (each.by === undefined ? each : { ...each, by: amount('by', each.by) }))
    return valuesOf(await this.#ask<CountersAnswer>('/v1/counters/add', { add }, countersAnswerFields, call))
  }

  /** Gives counters new values, all or none. Returns the previous values. A repeated call changes nothing more. */
  async set(settings: CounterSetting | CounterSetting[], call?: CallOptions): Promise<number[]> {
    const set = list(settings).map((each) => ({ ...each, value: amount('value', each.value) }))
    const answer = await this.#ask<SetAnswer>('/v1/counters/set', { set }, setAnswerFields, call)
    return answer.counters.map((each) => each.previous)
  }

  /** Sets counters to 0, and returns the previous values. */
  async reset(keys: CounterKey | CounterKey[], call?: CallOptions): Promise<number[]> {
    return valuesOf(await this.#ask<CountersAnswer>('/v1/counters/reset', { reset: list(keys) }, countersAnswerFields, call))
  }

  /** Returns the values of counters. A new counter has 0. */
  async get(names: string | string[], options: CounterOptions = {}): Promise<number[]> {
    return valuesOf(await this.#ask<CountersAnswer>('/v1/counters' + query(names, options), undefined, countersAnswerFields, options))
  }

  /** Returns the last n windows of counters, earliest first; 10 by default. */
  async history(names: string | string[], options: CounterOptions & { n?: number | undefined } = {}): Promise<CounterPoint[][]> {
    const path = '/v1/counters/history' + query(names, options)
    const answer = await this.#ask<CounterHistoryAnswer>(path, undefined, counterHistoryAnswerFields, options)
    return answer.counters.map((each) => each.points)
  }

  /** Adds values to distributions, such as response times. */
  async observe(samples: Sample | Sample[], call?: CallOptions): Promise<void> {
    await this.#ask('/v1/distributions/observe', { observe: list(samples) }, observeAnswerFields, call)
  }

  /** Returns the percentiles of the last n windows of distributions, and of these windows together. */
  async distributions(names: string | string[], options: Omit<CounterOptions, 'distinct'> & { n?: number | undefined } = {}): Promise<Distribution[]> {
    const path = '/v1/distributions' + query(names, options)
    return (await this.#ask<DistributionsAnswer>(path, undefined, distributionsAnswerFields, options)).distributions
  }
}

function list<T>(some: T | T[]): T[] {
  return Array.isArray(some) ? some : [some]
}

function valuesOf(answer: CountersAnswer): number[] {
  return answer.counters.map((each) => each.value)
}

// amount rounds a number to what can be sent. JSON has no NaN: it would become null, the default.
function amount(field: string, n: number): number {
  if (!Number.isFinite(n)) throw new WeirError('invalid', `weir: ${field} is ${String(n)}; write a number`)
  return Math.round(n * 1e6) / 1e6
}

function query(names: string | string[], { group, window, zone, distinct, n }: CounterOptions & { n?: number | undefined }): string {
  const all = new URLSearchParams(list(names).map((name) => ['name', name]))
  for (const [key, value] of Object.entries(defined({ group, window, zone, distinct, n }))) all.set(key, String(value))
  return '?' + all.toString()
}
