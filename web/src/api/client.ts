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
export const slowAfter = 3000
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

// Client calls the API. The token is kept here and nowhere else: it is gone when the
// page is.
export class Client {
  private token = ''
  private asking: Promise<string | null> | null = null

  // askToken gets a token from a person; null if they have none to give.
  askToken: AskToken = async () => null
  // onReadOnly is told that the token may not change anything.
  onReadOnly: () => void = () => {}
  // onSlow is told that one more call is slow, or one less: 1 or -1.
  onSlow: (more: number) => void = () => {}

  constructor(
    private readonly base = '',
    private readonly fetcher: typeof fetch = (input, init) => fetch(input, init),
  ) {}

  get hasToken(): boolean {
    return this.token !== ''
  }

  // forget drops the token.
  forget(): void {
    this.token = ''
  }

  async json<T>(method: string, path: string, call: Call = {}): Promise<Answer<T>> {
    const response = await this.send(method, path, { accept: 'application/json', ...call })
    return { value: (await response.json()) as T, version: versionOf(response) }
  }

  async text(method: string, path: string, call: Call = {}): Promise<Answer<string>> {
    const response = await this.send(method, path, call)
    return { value: await response.text(), version: versionOf(response) }
  }

  // send answers with a success, or throws. Whoever lacks a token is asked for one, and
  // the call is made again.
  async send(method: string, path: string, call: Call = {}): Promise<Response> {
    for (;;) {
      const used = this.token
      const response = await this.once(method, path, call)
      if (response.ok) return response
      const problem = await problemOf(response)
      if (problem.status === 401) {
        // Somebody else may have been asked while this call was under way.
        if (this.token !== used && this.token !== '') continue
        this.asking ??= this.askToken(used !== '').finally(() => (this.asking = null))
        const token = await this.asking
        if (token) {
          this.token = token
          continue
        }
      }
      if (problem.is('forbidden')) this.onReadOnly()
      throw problem
    }
  }

  private async once(method: string, path: string, call: Call): Promise<Response> {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(call.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== '') query.append(name, String(one))
      }
    }
    const headers: Record<string, string> = {}
    if (call.accept) headers['Accept'] = call.accept
    if (call.ifMatch !== undefined) headers['If-Match'] = `"${call.ifMatch}"`
    if (this.token) headers['Authorization'] = 'Bearer ' + this.token
    const init: RequestInit = { method, headers, cache: 'no-store', redirect: 'error', credentials: 'omit' }
    if (call.body !== undefined) init.body = typeof call.body === 'string' ? call.body : JSON.stringify(call.body)
    const search = query.toString()
    const patience = new AbortController()
    init.signal = call.signal ? AbortSignal.any([call.signal, patience.signal]) : patience.signal
    let slow = 0
    const timers = [
      setTimeout(() => this.onSlow((slow = 1)), slowAfter),
      setTimeout(() => patience.abort(), lostAfter),
    ]
    try {
      return await this.fetcher(this.base + path + (search ? '?' + search : ''), init)
    } catch (error) {
      if (call.signal?.aborted) throw error
      throw new Unreachable(String(error))
    } finally {
      timers.forEach(clearTimeout)
      if (slow) this.onSlow(-1)
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
    )
  } catch {
    return new Problem(response.status, '', text.slice(0, 300) || response.statusText || String(response.status))
  }
}
