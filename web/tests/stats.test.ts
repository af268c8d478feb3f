import { describe, expect, it } from 'vitest'
import { append, merge, pointOf, silenceOf, spanOf, type Alert, type Point, type Summary } from '../src/api/stats'

const second = (from: number, more: Partial<Summary> = {}): Summary => ({
  from, to: from + 1, window_s: 1, requests: 10, rate: 10, allowed: 4, denied: 1, shadow_denied: 2, soft_denied: 0, degraded_allowed: 1, degraded_denied: 1, blocked: 1, unknown_client: 0,
  denied_share: 0.1, latency_us: { p50: 1, p90: 2, p99: 3, mean: 1.5 }, store: { up: true }, ...more,
})

describe('a second of the stream', () => {
  it('is a point at its beginning, with every outcome', () => {
    expect(pointOf(second(1000.4, { upstream: { requests: 5, errors: 2, error_share: 0.4 } }))).toEqual({
      t: 1000, requests: 10, rate: 10, allowed: 4, denied: 1, shadow_denied: 2, soft_denied: 0, degraded_allowed: 1, degraded_denied: 1, blocked: 1, unknown_client: 0,
      p50_us: 1, p90_us: 2, p99_us: 3, upstream_requests: 5, upstream_errors: 2,
    })
  })
  it('without requests has no latency', () => {
    const point = pointOf(second(1, { requests: 0, latency_us: { p50: 0, p90: 0, p99: 0, mean: 0 } }))
    expect([point.p50_us, point.p90_us, point.p99_us, point.upstream_requests]).toEqual([undefined, undefined, undefined, 0])
  })
})

describe('points', () => {
  const at = (...times: number[]): Point[] => times.map((t) => pointOf(second(t)))
  const times = (points: Point[]) => points.map((p) => p.t)
  it.each([
    ['come one after the other', [1, 2], 3, [1, 2, 3]],
    ['are not kept for ever', [1, 2, 3], 4, [2, 3, 4]],
    ['begin', [], 7, [7]],
    ['may have a gap', [1, 2], 9, [1, 2, 9]],
    ['are not there twice', [1, 2, 3], 3, [1, 2, 3]],
    ['do not go back', [1, 2, 3], 2, [1, 2, 3]],
  ])('%s', (_, before, t, want) => expect(times(append(at(...before), pointOf(second(t)), 3))).toEqual(want))
  it('are replaced by what is known later', () => {
    expect(append(at(1), pointOf(second(1, { requests: 99 })), 3)[0]!.requests).toBe(99)
  })
})

it('a silence is of an alert, or of its kind', () => {
  const alert = { id: 'shadow:api', kind: 'shadow' } as Alert
  const silence = (id: string) => ({ id, until: '2026-01-01T00:00:00Z' })
  expect(silenceOf(alert, [])).toBeUndefined()
  expect(silenceOf(alert, [silence('shadow:login'), silence('denied')])).toBeUndefined()
  expect(silenceOf(alert, [silence('shadow')])?.id).toBe('shadow')
  expect(silenceOf(alert, [silence('shadow'), silence('shadow:api')])?.id).toBe('shadow:api')
})

describe('merge', () => {
  const at = (t: number, requests = 1) => pointOf(second(t, { requests }))
  it('fills gaps in order, and takes the newer of two', () => {
    const all = merge([at(1), at(2), at(3), at(4)], [at(1, 9), at(4, 9), at(6, 9)])
    expect(all.map((p) => [p.t, p.requests])).toEqual([[1, 9], [2, 1], [3, 1], [4, 9], [6, 9]])
  })
})

it('an alert is about the time before it, and until it was over', () => {
  const alert = { starts_at: '2026-01-01T00:10:00Z' } as Alert
  const at = (text: string) => Date.parse(text) / 1000
  expect(spanOf(alert, at('2026-01-01T00:20:30.5Z'))).toEqual({ from: at('2026-01-01T00:00:00Z'), to: at('2026-01-01T00:20:30Z') })
  expect(spanOf({ ...alert, ends_at: '2026-01-01T00:15:00Z' }, at('2026-01-02T00:00:00Z')).to).toBe(at('2026-01-01T00:25:00Z'))
})
