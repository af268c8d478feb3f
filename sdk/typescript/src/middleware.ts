import type { CheckRequest } from './api.js'
import type { Client } from './client.js'
import { WeirError } from './errors.js'
import type { Verdict } from './fallback.js'
import { denialOf, headersOf, invalid, type Denial } from './headers.js'
import { defined } from './options.js'

/** Options of a middleware. */
export interface LimitOptions<Request> {
  /**
   * Returns what your program knows about a request, such as the user who is logged in, the tier,
   * attributes, and the headers, cookies and parameters that your rules use. Return only what you
   * have verified, not what the client claims. The address of the client is that of the
   * connection; behind a proxy that you trust, return ip. Default: address, method, host and path.
   */
  request?: (request: Request) => CheckRequest | Promise<CheckRequest>
  /** Whether a request passes without a check. Default never. */
  skip?: (request: Request) => boolean
  /** Changes the answer to a denied request. Default none. */
  deny?: (denial: Denial, verdict: Verdict, request: Request) => Denial
  /** Whether responses get the headers about limits. Default true. */
  headers?: boolean
  /** The maximum number of requests that are delayed at the same time. Further requests get 503. Default 1000. */
  maxDelayed?: number
}

// Incoming is a request of node:http, or of a framework that extends it.
export interface Incoming {
  method?: string | undefined
  url?: string | undefined
  originalUrl?: string | undefined // that of Express, where url is what follows the mount point
  headers: Record<string, string | string[] | undefined>
  socket: {
    remoteAddress?: string | undefined
    destroyed: boolean
    once(event: 'close', listener: () => void): unknown
    removeListener(event: 'close', listener: () => void): unknown
  }
}

// Outcome is what to do with a request: pass it on with these headers, answer it, or forget it
// because the client has disconnected.
export type Outcome = { pass: Record<string, string> } | { answer: Denial } | 'gone'

// Guard decides requests for a middleware.
export class Guard<Request> {
  readonly #client: Client
  readonly #options: LimitOptions<Request>
  #delayed = 0

  constructor(client: Client, options: LimitOptions<Request>) {
    this.#client = client
    this.#options = { headers: true, maxDelayed: 1000, ...defined(options) }
  }

  async decide(request: Request, incoming: Incoming): Promise<Outcome> {
    const o = this.#options
    if (o.skip?.(request)) return { pass: {} }
    const known = await o.request?.(request)
    let verdict: Verdict
    try {
      verdict = await this.#client.check({ ...describe(incoming), ...defined(known ?? {}) })
    } catch (error) {
      if (error instanceof WeirError && error.code === 'invalid') return { answer: invalid() }
      throw error
    }
    if (verdict.allowed && verdict.delayMs > 0) {
      if (this.#delayed >= o.maxDelayed!) {
        const retryAfterMs = Math.max(1, verdict.delayMs)
        Object.assign(verdict, { allowed: false, reason: 'unavailable', status: 503, retryAfterMs, message: 'Too many requests are delayed; try again soon.' })
      } else {
        await this.#delay(verdict.delayMs, incoming.socket)
        if (incoming.socket.destroyed) return 'gone'
      }
    }
    if (verdict.allowed) return { pass: o.headers ? headersOf(verdict) : {} }
    const denial = denialOf(verdict)
    if (!o.headers) denial.headers = { 'Cache-Control': 'no-store', 'Content-Type': 'application/problem+json' }
    return { answer: o.deny?.(denial, verdict, request) ?? denial }
  }

  // delay lets a request wait for its turn, or until the client disconnects.
  async #delay(ms: number, socket: Incoming['socket']): Promise<void> {
    this.#delayed++
    await new Promise<void>((done) => {
      const end = () => {
        clearTimeout(timer)
        socket.removeListener('close', end)
        done()
      }
      const timer = setTimeout(end, ms)
      socket.once('close', end)
    })
    this.#delayed--
  }
}

// describe is what a request certainly is. Its headers are what the client claims, so none is
// used but the host, which is a name of this server and no client's.
function describe(r: Incoming): CheckRequest {
  const host = r.headers['host'] ?? r.headers[':authority']
  return defined({
    ip: (r.socket.remoteAddress ?? '127.0.0.1').replace(/%.*/, ''), // a Unix socket has no address
    method: r.method,
    host: typeof host === 'string' ? host : undefined,
    path: pathOf(r.originalUrl ?? r.url ?? ''),
  }) as CheckRequest
}

// pathOf is the path as it was sent, without the query. A server that was asked for a host alone
// serves its root, and one that was asked for "*" serves no path at all.
function pathOf(url: string): string {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
  if (path === '') return '/'
  return path.startsWith('/') ? path : ''
}
