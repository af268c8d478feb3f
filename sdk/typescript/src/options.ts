/** What to answer while weir is unavailable: allow, deny, or apply a limit in this process. */
export type OnFailure = 'open' | 'closed' | 'local'

/** The limit while weir is unavailable: each client can make limit requests per period, in a fixed window. */
export interface LocalLimit {
  /** Requests per period, whatever they cost. */
  limit: number
  periodMs: number
  /** The maximum number of clients that are counted by themselves; further clients share one count. Default 10000. */
  maxKeys?: number
}

/** Options of a client. */
export interface Options {
  /** Where weir is, such as http://127.0.0.1:8080. */
  url: string
  /**
   * Sent with every call. If weir has tokens, checks require one with the right check, charge one
   * with the right charge, and counters one with the right use. Without https it is sent only to
   * this machine. Default none.
   */
  token?: string
  /** Sends the token without https to other machines, too, for private networks. Default false. */
  plainToken?: boolean
  /** The maximum duration of a call. Default 100. */
  timeoutMs?: number
  /** What to answer while weir is unavailable. Default open. */
  onFailure?: OnFailure
  /** Required with onFailure: 'local'. */
  local?: LocalLimit
  /** The maximum number of calls in flight. Further calls are answered as if weir were unavailable. Default 1000. */
  maxInFlight?: number
  /** Told when weir becomes unavailable, and when it is available again. Default console. */
  logger?: { warn(...args: unknown[]): void; info(...args: unknown[]): void }
  /** Default the fetch of the runtime. */
  fetch?: typeof fetch
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call; it then throws the reason of the signal. */
  signal?: AbortSignal | undefined
  /** Default the timeoutMs of the client. */
  timeoutMs?: number | undefined
}

export type Settings = Required<Omit<Options, 'local' | 'token'>> & Pick<Options, 'local' | 'token'>

// settings checks the options, and adds the defaults.
export function settings(options: Options): Settings {
  const all: Settings = { timeoutMs: 100, onFailure: 'open', maxInFlight: 1000, plainToken: false, logger: console, fetch: globalThis.fetch, ...defined(options) }
  const url = parse(all.url)
  all.url = url.href.replace(/\/+$/, '')
  positive('timeoutMs', all.timeoutMs)
  positive('maxInFlight', all.maxInFlight)
  if (!['open', 'closed', 'local'].includes(all.onFailure)) {
    throw new TypeError(`weir: onFailure is ${JSON.stringify(all.onFailure)}; write open, closed or local`)
  }
  if (all.onFailure === 'local') {
    if (!all.local) throw new TypeError("weir: local is required with onFailure: 'local'; write { limit: 100, periodMs: 60000 }")
    positive('local.limit', all.local.limit)
    positive('local.periodMs', all.local.periodMs)
    if (all.local.maxKeys !== undefined) positive('local.maxKeys', all.local.maxKeys)
  }
  if (all.token !== undefined && !/^[!-~]+$/.test(all.token)) {
    throw new TypeError('weir: token has characters that are not valid in a header; check for spaces and line ends around it')
  }
  if (all.token !== undefined && !all.plainToken && url.protocol !== 'https:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)) {
    throw new TypeError('weir: token would be sent in clear text; use https, or set plainToken in a private network')
  }
  return all
}

function parse(text: string): URL {
  let url: URL | undefined
  try {
    url = new URL(text)
  } catch {} // the message below says what to write
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new TypeError('weir: url is required, as http://host:port or https://host, without a user or a query')
  }
  return url
}

function positive(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0) {
    throw new TypeError(`weir: ${name} is ${String(value)}; write a positive whole number`)
  }
}

// defined is an object without the fields that are undefined.
export function defined<T extends object>(from: T): T {
  return Object.fromEntries(Object.entries(from).filter(([, value]) => value !== undefined)) as T
}
