import type { Answer, CheckRequest } from './api.js'
import type { LocalLimit, Settings } from './options.js'

/** The answer to a request. */
export interface Verdict extends Answer {
  /** Why weir is unavailable, if degraded is true because of that. */
  error?: Error
}

// outageMs is when to come back while weir is unavailable: a restart takes some seconds.
const outageMs = 5000

// maxKey is how many characters a client may have to be counted by itself: keys are kept, and
// clients choose them.
const maxKey = 1024

// Fallback answers while weir is unavailable.
export class Fallback {
  readonly #settings: Settings
  readonly #local: Local | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    if (settings.onFailure === 'local' && settings.local) this.#local = new Local(settings.local)
  }

  // answer decides a request, and counts it if it is to be charged.
  answer(error: Error, request: CheckRequest, charge: boolean): Verdict {
    const verdict: Verdict = {
      allowed: true, reason: 'unavailable', status: 0, rule: '', level: '', code: 0, message: '',
      limit: 0, remaining: 0, reserved: 0, resetAt: 0, resetAfterMs: 0, retryAfterMs: 0, delayMs: 0,
      hold: '', unheld: false, priority: '', degraded: true, version: 0, results: [], error,
    }
    if (this.#local) {
      this.#local.decide(verdict, request, charge)
    } else if (this.#settings.onFailure === 'closed') {
      Object.assign(verdict, { allowed: false, status: 503, retryAfterMs: outageMs, message: 'The rate limiter is unavailable; try again soon.' })
    }
    return verdict
  }
}

// Local is a fixed window in this process. All clients have the same window, so that the counts
// are dropped at once when it ends, and what they take is bounded without a search.
class Local {
  readonly #limit: Required<LocalLimit>
  readonly #policy: string
  readonly #counts = new Map<string, number>()
  #end = 0

  constructor(limit: LocalLimit) {
    this.#limit = { maxKeys: 10_000, ...limit }
    this.#policy = `${limit.limit}/${period(limit.periodMs)}`
  }

  decide(verdict: Verdict, request: CheckRequest, charge: boolean): void {
    const { limit, periodMs, maxKeys } = this.#limit
    const now = performance.now()
    if (now >= this.#end) {
      this.#counts.clear()
      this.#end = now + periodMs
    }
    let key = keyOf(request)
    if (key.length > maxKey || (!this.#counts.has(key) && this.#counts.size >= maxKeys)) key = '' // with all others that do not fit
    const used = this.#counts.get(key) ?? 0
    const allowed = used < limit
    if (charge && allowed) this.#counts.set(key, used + 1)
    const left = Math.ceil(this.#end - now)
    const numbers = {
      rule: 'local', level: '', allowed, limit, remaining: Math.max(0, limit - used - (allowed && charge ? 1 : 0)),
      resetAt: Math.ceil((Date.now() + left) / 1000), resetAfterMs: left, retryAfterMs: allowed ? 0 : left, delayMs: 0, reserved: 0, leased: 0,
    }
    Object.assign(verdict, numbers, { reason: 'limits' })
    verdict.results = [{ ...numbers, key, algorithm: 'fixed_window', policy: this.#policy, shadow: false, soft: false, asked: true, local: true, cost: 1, excess: 0, leave: 0, penalty: false, warning: 0 }]
    if (!allowed) {
      Object.assign(verdict, { status: 429, message: `The limit local is used up; try again in ${Math.ceil(left / 1000)} s.` })
    }
  }
}

// keyOf is the client of a request, as precisely as it is known.
function keyOf(request: CheckRequest): string {
  if (request.user) return `user:${request.user}`
  if (request.apiKey) return `api_key:${request.apiKey}`
  return request.ip ? `ip:${request.ip}` : ''
}

// period is a length as weir writes it.
function period(ms: number): string {
  for (const [length, unit] of [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1000, 's']] as const) {
    if (ms % length === 0) return ms / length + unit
  }
  return ms + 'ms'
}
