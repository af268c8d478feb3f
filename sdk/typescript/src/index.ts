// A client for weir, an API rate limiter. It needs fetch, and nothing else of its runtime.
export { Client } from './client.js'
export { Counters, type CounterOptions } from './counters.js'
export { Hold } from './hold.js'
export { WeirError, type ErrorCode } from './errors.js'
export { denialOf, headersOf, type Denial } from './headers.js'
export type {
  CheckRequest, CounterDelta, CounterKey, CounterPoint, CounterSetting, Distribution, Override, Part, Percentiles, Result, Sample, Settled,
} from './api.js'
export type { Verdict } from './fallback.js'
export type { CallOptions, LocalLimit, OnFailure, Options } from './options.js'
