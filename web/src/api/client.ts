// The way to the API: one place that knows of tokens, versions and problems.

import type { RuleProblem } from './types'

// Problem is an answer that is no success, as the API describes it.
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    readonly detail: string,
    readonly field = '',
    readonly problems: RuleProblem[] = [],
    readonly version = 0,
    readonly code = '',
    readonly params: Record<string, unknown> = {},
  ) {
    super(detail)
    this.name = 'Problem'
  }

  // is tells a kind of problem by the end of its type, which is a promise of the API.
  is(kind: string): boolean {
    return this.type === 'urn:weir:problem:' + kind
  }
}

// Unreachable is a server that did not answer at all.
export class Unreachable extends Error {}

// How many milliseconds a call may take until it is called slow, and until it is given
// up: longer than the server itself takes for anything but a stream that has begun.
export const slowAfter = 1000
export const lostAfter = 20_000

export interface Call {
  query?: Record<string, string | number | string[] | undefined> // a list is said once for each
  body?: string | object
  ifMatch?: number
  accept?: string
  signal?: AbortSignal
}

export interface Answer<T> {
  value: T
  version: number // of the rules, from the ETag; 0 if there is none
}

export type AskToken = (wrong: boolean) => Promise<string | null>

// Client calls the API. A token is handed to the server for a session, which is a cookie that no
// script can read. Where a server or a browser keeps none, the token is kept here and nowhere
// else: it is gone when the page is.
export class Client {
  private token = ''
  private signs = 0 // how often somebody signed in
  private asking: Promise<boolean> | null = null

  // askToken gets a token from a person; null if they have none to give, and an empty one if
  // they have signed in elsewhere.
  askToken: AskToken = async () => null
  // onReadOnly is told that the token may not change anything.
  onReadOnly: () => void = () => {}
  // onWarnings is told of the warnings in the answer to a change.
  onWarnings: (warnings: RuleProblem[]) => void = () => {}
  // onSlow is told that one more call is slow, or one less: 1 or -1.
  onSlow: (more: number, path: string) => void = () => {}

  constructor(
    private readonly base = '',
    private readonly fetcher: typeof fetch = (input, init) => fetch(input, init),
  ) {}

  get hasToken(): boolean {
    return this.token !== ''
  }

  // signOut ends the session and drops the token.
  async signOut(): Promise<void> {
    this.token = ''
    await this.once('DELETE', '/v1/session', {}).catch(() => {})
  }

  async json<T>(method: string, path: string, call: Call = {}): Promise<Answer<T>> {
    const response = await this.send(method, path, { accept: 'application/json', ...call })
    const value = await response.json()
    if (method !== 'GET' && value?.warnings?.length > 0) this.onWarnings(value.warnings)
    return { value: value as T, version: versionOf(response) }
  }

  async text(method: string, path: string, call: Call = {}): Promise<Answer<string>> {
    const response = await this.send(method, path, call)
    return { value: await response.text(), version: versionOf(response) }
  }

  // send answers with a success, or throws. Whoever lacks a token is asked for one, and
  // the call is made again.
  async send(method: string, path: string, call: Call = {}): Promise<Response> {
    for (;;) {
      const [used, signs] = [this.token, this.signs]
      const response = await this.once(method, path, call)
      if (response.ok) return response
      const problem = await problemOf(response)
      if (problem.status === 401) {
        // Somebody else may have been asked while this call was under way.
        if (this.signs !== signs) continue
        this.asking ??= this.signIn(used !== '').finally(() => (this.asking = null))
        if (await this.asking) continue
      }
      if (problem.is('forbidden')) this.onReadOnly()
      throw problem
    }
  }

  private async signIn(wrong: boolean): Promise<boolean> {
    for (;;) {
      const token = await this.askToken(wrong)
      if (token === null) return false
      this.token = '' // it would win over the session
      if (token !== '') {
        const kept = await this.beginSession(token)
        wrong = kept === 'wrong'
        if (wrong) continue
        if (kept === 'page') this.token = token
      }
      this.signs++
      return true
    }
  }

  // beginSession says where a token is kept: in a session, or on this page if there is none.
  private async beginSession(token: string): Promise<'session' | 'page' | 'wrong'> {
    try {
      const begun = await this.once('POST', '/v1/session', { body: { token } })
      if (begun.status === 401) return 'wrong'
      if (!begun.ok) return 'page'
      // A browser may keep no cookies.
      return (await this.once('GET', '/v1/whoami', {})).status === 401 ? 'page' : 'session'
    } catch {
      return 'page'
    }
  }

  private async once(method: string, path: string, call: Call): Promise<Response> {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(call.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== '') query.append(name, String(one))
      }
    }
    // A page elsewhere cannot send this header, so the server knows that the cookie is not misused.
    const headers: Record<string, string> = { 'X-Weir-Session': '1' }
    if (call.accept) headers['Accept'] = call.accept
    if (call.ifMatch !== undefined) headers['If-Match'] = `"${call.ifMatch}"`
    if (this.token) headers['Authorization'] = 'Bearer ' + this.token
    const init: RequestInit = { method, headers, cache: 'no-store', redirect: 'error', credentials: 'same-origin' }
    if (call.body !== undefined) init.body = typeof call.body === 'string' ? call.body : JSON.stringify(call.body)
    const search = query.toString()
    const patience = new AbortController()
    init.signal = call.signal ? AbortSignal.any([call.signal, patience.signal]) : patience.signal
    let slow = 0
    const timers = [
      setTimeout(() => this.onSlow((slow = 1), path), slowAfter),
      setTimeout(() => patience.abort(), lostAfter),
    ]
    try {
      return await this.fetcher(this.base + path + (search ? '?' + search : ''), init)
    } catch (error) {
      if (call.signal?.aborted) throw error
      throw new Unreachable(String(error))
    } finally {
      timers.forEach(clearTimeout)
      if (slow) this.onSlow(-1, path)
    }
  }
}

// patient makes a call again if the server is busy with others.
export async function patient<T>(call: () => Promise<T>): Promise<T> {
  for (let left = 20; ; left--) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof Problem && error.is('busy')) || left <= 0) throw error
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}

function versionOf(response: Response): number {
  const found = /"(\d+)"/.exec(response.headers.get('ETag') ?? '')
  return found ? Number(found[1]) : 0
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '')
  try {
    const p = JSON.parse(text)
    return new Problem(
      response.status,
      String(p.type ?? ''),
      String(p.detail ?? p.title ?? response.statusText),
      String(p.field ?? ''),
      Array.isArray(p.problems) ? p.problems : [],
      Number(p.version ?? 0) || versionOf(response),
      String(p.code ?? ''),
      p.params ?? {},
    )
  } catch {
    return new Problem(response.status, '', text.slice(0, 300) || response.statusText || String(response.status))
  }
}
