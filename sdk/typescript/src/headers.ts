import type { Result } from './api.js'
import type { Verdict } from './fallback.js'

// maxPolicies bounds a header that grows with the rules: proxies refuse a response whose headers
// are longer than a few kilobytes.
const maxPolicies = 16

// maxInteger is the largest one of RFC 9651.
const maxInteger = 999_999_999_999_999

/**
 * The response headers for a verdict: X-RateLimit-*, RateLimit-Policy and RateLimit,
 * RateLimit-Warning if the client is near a limit, and Retry-After if the request is denied. They are those of weir's middleware for Go.
 */
export function headersOf(verdict: Verdict): Record<string, string> {
  const headers: Record<string, string> = {}
  const speaker = speakerOf(verdict)
  const wait = verdict.allowed ? 0 : verdict.retryAfterMs
  if (speaker) {
    headers['X-RateLimit-Limit'] = String(speaker.limit)
    headers['X-RateLimit-Remaining'] = String(speaker.remaining)
    headers['X-RateLimit-Reset'] = String(speaker.resetAt)
  }
  if (verdict.degraded) headers['X-RateLimit-Degraded'] = '1'
  if (speaker) {
    const until = wait || Math.max(0, speaker.resetAfterMs - verdict.delayMs)
    headers['RateLimit-Policy'] = policiesOf(verdict, speaker)
    headers['RateLimit'] = `"${nameOf(verdict, speaker)}"` + parameter('r', speaker.remaining) + parameter('t', seconds(until))
  }
  const warnings = warningsOf(verdict)
  if (warnings) headers['RateLimit-Warning'] = warnings
  if (wait) headers['Retry-After'] = String(seconds(wait))
  return headers
}

/** A complete answer to a denied request: status, headers and an application/problem+json body (RFC 9457). */
export interface Denial {
  status: number
  headers: Record<string, string>
  body: string
}

const kinds: Record<string, [type: string, title: string]> = {
  blocked: ['about:blank', 'Forbidden'],
  unknown_client: ['about:blank', 'Unauthorized'],
  unavailable: ['https://iana.org/assignments/http-problem-types#temporary-reduced-capacity', 'Temporary Reduced Capacity'],
}
const quota: [string, string] = ['https://iana.org/assignments/http-problem-types#quota-exceeded', 'Quota Exceeded']

/** The answer to a request that a verdict denies. */
export function denialOf(verdict: Verdict): Denial {
  const [type, title] = kinds[verdict.reason] ?? quota
  const names = verdict.results.filter((r) => r.asked && !r.shadow && !r.allowed).map((r) => nameOf(verdict, r))
  const problem = {
    detail: verdict.message || undefined,
    rule: verdict.rule || undefined,
    level: verdict.level || undefined,
    code: verdict.code || undefined,
    'violated-policies': verdict.reason === 'limits' && names.length > 0 ? [...new Set(names)] : undefined,
    retry_after: verdict.retryAfterMs > 0 ? seconds(verdict.retryAfterMs) : undefined,
  }
  return answer(type, title, verdict.status || 429, problem, headersOf(verdict))
}

/** The answer to a request that cannot be checked, because weir says that it is invalid. */
export function invalid(): Denial {
  return answer('about:blank', 'Bad Request', 400, { detail: 'The request is invalid, so its limits cannot be checked.' }, {})
}

function answer(type: string, title: string, status: number, problem: object, headers: Record<string, string>): Denial {
  return {
    status,
    headers: { ...headers, 'Cache-Control': 'no-store', 'Content-Type': 'application/problem+json' },
    body: JSON.stringify({ type, title, status, ...problem }) + '\n',
  }
}

// speakerOf is the result that the numbers of a verdict come from.
function speakerOf(v: Verdict): Result | undefined {
  return v.results.find(
    (r) =>
      !isHidden(r) && r.rule === v.rule && r.limit === v.limit && r.remaining === v.remaining &&
      r.resetAt === v.resetAt && (v.allowed || !r.allowed),
  )
}

// policiesOf are the limits that were asked, each once; the one that speaks is always among them.
function policiesOf(v: Verdict, speaker: Result): string {
  const all: Result[] = []
  for (const r of v.results) {
    const last = all.length === maxPolicies - 1 && !all.some((other) => same(other, speaker))
    if (isHidden(r) || all.length === maxPolicies || (last && !same(r, speaker)) || all.some((other) => same(other, r))) continue
    all.push(r)
  }
  return all.map((r) => `"${nameOf(v, r)}"` + parameter('q', r.limit) + windowOf(r)).join(', ')
}

// isHidden is whether a client is not told of a limit.
const isHidden = (r: Result) => !r.asked || (r.shadow && !r.soft)

// warningsOf are the limits that have reached a threshold, and soft ones that were exceeded. Who
// is denied knows anyway.
function warningsOf(v: Verdict): string {
  const all: Result[] = []
  for (const r of v.results) {
    const exceeded = r.soft && !r.allowed
    if (!v.allowed || isHidden(r) || (!r.warning && !exceeded) || all.some((other) => same(other, r))) continue
    all.push(r)
  }
  return all
    .slice(0, maxPolicies)
    .map((r) => {
      const used = r.warning ? parameter('used', r.warning) : ''
      const until = seconds(Math.max(0, r.resetAfterMs - v.delayMs))
      return `"${nameOf(v, r)}"${used}${parameter('r', r.remaining)}${parameter('t', until)}${r.soft && !r.allowed ? ';soft' : ''}`
    })
    .join(', ')
}

const same = (a: Result, b: Result) => a.rule === b.rule && a.level === b.level && a.policy === b.policy && a.limit === b.limit

const lengths: Record<string, number> = { d: 86_400e6, h: 3600e6, m: 60e6, s: 1e6, ms: 1000, us: 1, ns: 0.001 }

// windowOf is the time in which the whole limit comes back, so that q/w is the rate also of a
// bucket with a burst.
function windowOf(r: Result): string {
  const [, n, amount, unit] = /^(\d+)\/(\d+)(d|h|m|s|ms|us|ns)$/.exec(r.policy) ?? []
  if (!n || !amount || !unit) return ''
  let micros = Number(amount) * lengths[unit]!
  if (r.algorithm.endsWith('_bucket')) micros = Math.floor((r.limit * micros) / Number(n))
  return micros >= 1e6 ? parameter('w', Math.ceil(micros / 1e6)) : ''
}

// nameOf is the id of the rule, the level if it has levels and, if it has several limits for this client, the period.
function nameOf(v: Verdict, r: Result): string {
  const several = v.results.some((other) => other.rule === r.rule && other.level === r.level && !same(other, r))
  return escaped(r.rule) + (r.level && ':' + r.level) + (several ? ':' + escaped(r.policy.slice(r.policy.indexOf('/') + 1)) : '')
}

// escaped is what a header can have in quotes.
function escaped(text: string): string {
  return text.replace(/[^!-~]|["\\%:]/gu, (c) => encodeURIComponent(/[\ud800-\udfff]/u.test(c) ? '\ufffd' : c))
}

const parameter = (name: string, n: number) => `;${name}=${Math.min(n, maxInteger)}`

// seconds are rounded up: a client that comes back a moment too early is denied again.
const seconds = (ms: number) => Math.ceil(ms / 1000)
