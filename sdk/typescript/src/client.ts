import { answerFields, problemFields, type Answer, type CheckRequest, type Problem } from './api.js'
import { Breaker } from './breaker.js'
import { Counters } from './counters.js'
import { decode, encode, type Fields } from './decode.js'
import { clip, WeirError, type ErrorCode } from './errors.js'
import { Fallback, type Verdict } from './fallback.js'
import { Hold } from './hold.js'
import { settings, type CallOptions, type Options, type Settings } from './options.js'

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 1 << 20

// mistakes are the problems of a request, while weir is well.
const mistakes: Record<string, ErrorCode> = {
  'urn:weir:problem:bad-body': 'invalid',
  'urn:weir:problem:bad-field': 'invalid',
  'urn:weir:problem:too-large': 'invalid',
  'urn:weir:problem:invalid-request': 'invalid',
  'urn:weir:problem:hold-unknown': 'hold-unknown',
  'urn:weir:problem:hold-expired': 'hold-expired',
  'urn:weir:problem:out-of-range': 'out-of-range',
  'urn:weir:problem:counters-full': 'counters-full',
  'urn:weir:problem:token-required': 'unauthorized',
  'urn:weir:problem:invalid-token': 'unauthorized',
  'urn:weir:problem:forbidden': 'unauthorized',
}

/**
 * Asks a weir service. Share one client in your program.
 *
 * An unavailable service is not an error: onFailure decides the answer, which is marked as
 * degraded. After three failures in a row the circuit breaker opens: only one call in about half
 * a second still tries the service, and the others do not wait.
 *
 * The client sends no call twice, because both could be charged. A call that was sent but not
 * answered may have been charged.
 */
export class Client {
  readonly #settings: Settings
  readonly #breaker: Breaker
  readonly #fallback: Fallback
  #inFlight = 0

  /** Counts in weir. Its failures do not open the circuit breaker, and are always errors. */
  readonly counters = new Counters((path, message, fields, call) => this.#ask(path, message, fields, call, null))

  constructor(options: Options) {
    this.#settings = settings(options)
    this.#breaker = new Breaker(this.#settings)
    this.#fallback = new Fallback(this.#settings)
  }

  /** Asks whether a request is allowed, and charges it. */
  check(request: CheckRequest, call?: CallOptions): Promise<Verdict> {
    return this.#one('/v1/check', request, {}, call)
  }

  /** Returns the answer that check would return, and charges nothing. */
  peek(request: CheckRequest, call?: CallOptions): Promise<Verdict> {
    return this.#one('/v1/check', request, { peek: true }, call)
  }

  /**
   * Charges the cost of a request even if it does not fit, for work that is done already.
   * allowed is whether it fitted. If weir is unavailable, nothing is charged.
   */
  charge(request: CheckRequest, call?: CallOptions): Promise<Verdict> {
    return this.#one('/v1/check', request, { charge: 'always' }, call)
  }

  /**
   * Asks whether a request is allowed, as check does, and charges its cost as an estimate. Settle,
   * cancel or extend the hold before ttlMs has passed; 0 is one minute. If nothing was charged,
   * the id of the hold is empty, and its methods do nothing: the request is denied, no limit
   * applies to it, or weir is unavailable. It is also empty if the verdict is unheld: what was
   * charged then stays.
   */
  async reserve(request: CheckRequest, call?: CallOptions & { ttlMs?: number }): Promise<{ hold: Hold; verdict: Verdict }> {
    const verdict = await this.#one('/v1/reserve', request, { ttl_ms: call?.ttlMs }, call)
    return { hold: this.hold(verdict.hold, verdict.holdExpiresAt), verdict }
  }

  /** Returns the hold with an id, which another process may have reserved. */
  hold(id: string, expiresAt?: Date): Hold {
    return new Hold(id, expiresAt, (path, message, fields, call) => this.#ask(path, message, fields, call))
  }

  async #one(path: string, request: CheckRequest, more: object, call?: CallOptions): Promise<Verdict> {
    try {
      return await this.#ask<Answer>(path, { ...encode(request), ...more }, answerFields, call)
    } catch (error) {
      if (error instanceof WeirError && error.code === 'unavailable') {
        return this.#fallback.answer(error, request, !('peek' in more))
      }
      throw error
    }
  }

  // ask calls the service, with GET if there is no message. It tells the breaker what came of it.
  async #ask<T>(path: string, message: object | undefined, fields: Fields, call: CallOptions = {}, breaker: Breaker | null = this.#breaker): Promise<T> {
    const body = message && JSON.stringify(message)
    call.signal?.throwIfAborted()
    breaker?.enter()
    if (this.#inFlight >= this.#settings.maxInFlight) {
      throw away('too many calls are in flight; raise maxInFlight, or send fewer calls')
    }
    this.#inFlight++
    try {
      const answer = await this.#send<T>(path, body, fields, call)
      breaker?.succeeded()
      return answer
    } catch (error) {
      if (call.signal?.aborted) throw call.signal.reason // which says nothing about the service
      if (error instanceof WeirError && error.code !== 'unavailable') {
        breaker?.succeeded()
        throw error
      }
      const why = error instanceof WeirError ? error : away(reason(error), error)
      breaker?.failed(why)
      throw why
    } finally {
      this.#inFlight--
    }
  }

  // send makes one call, which ends in time, body included.
  async #send<T>(path: string, body: string | undefined, fields: Fields, call: CallOptions): Promise<T> {
    const { url, token, timeoutMs, fetch } = this.#settings
    const limit = call.timeoutMs ?? timeoutMs
    const ender = new AbortController()
    const timer = setTimeout(() => ender.abort(new Error(`no answer within ${limit} ms`)), limit)
    const cancel = () => ender.abort(call.signal?.reason)
    call.signal?.addEventListener('abort', cancel, { once: true })
    try {
      const headers: Record<string, string> = { 'Content-Type': 'application/json' }
      if (token !== undefined) headers['Authorization'] = `Bearer ${token}`
      const sent = body === undefined ? { method: 'GET' } : { method: 'POST', body }
      const response = await fetch(url + path, { ...sent, headers, redirect: 'manual', signal: ender.signal })
      const text = await read(response)
      if (response.status === 200 || response.status === 202) return decode<T>(fields, JSON.parse(text))
      throw problem(response.status, text)
    } finally {
      clearTimeout(timer)
      call.signal?.removeEventListener('abort', cancel)
    }
  }
}

// read reads a body, up to a bound.
async function read(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  if (!reader) return ''
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (let size = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    size += value.byteLength
    if (size > maxAnswer) {
      reader.cancel().catch(() => {}) // the connection is of no use any more
      throw new Error(`the answer has more than ${maxAnswer} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}

// problem is the error of an answer that is no success.
function problem(status: number, text: string): WeirError {
  let said: Problem | undefined
  try {
    said = decode<Problem>(problemFields, JSON.parse(text))
  } catch {} // somebody else answers
  const code = said && mistakes[said.type]
  if (said && code) return new WeirError(code, `weir: ${clip(said.detail)}`)
  return away(`the answer has the status ${status}${said ? ': ' + clip(said.detail) : ''}`)
}

function away(why: string, cause?: unknown): WeirError {
  return new WeirError('unavailable', `weir: the service is unavailable: ${why}`, { cause })
}

// reason is what an error says. That of fetch is in its cause.
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message
}
