// A client for weir, an API rate limiter. It needs fetch, and nothing else of its runtime.
export { Client } from './client.js'
export { Hold } from './hold.js'
export { WeirError, type ErrorCode } from './errors.js'
export { denialOf, headersOf, type Denial } from './headers.js'
export type { CheckRequest, Override, Part, Result, Settled } from './api.js'
export type { Verdict } from './fallback.js'
export type { CallOptions, LocalLimit, OnFailure, Options } from './options.js'
