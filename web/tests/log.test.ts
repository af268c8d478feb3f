import { describe, expect, it } from 'vitest'
import { fromLog, timeOf } from '../src/log'

describe('timeOf', () => {
  it.each([
    ['2026-01-01T00:00:00Z GET /', 1767225600_000_000],
    ['2026-01-01T00:00:00.25Z', 1767225600_250_000],
    ['2026-01-01 01:00:00,123456789+01:00 x', 1767225600_123_456],
    ['{"time":"2026-01-01T00:00:00.000001Z","n":5}', 1767225600_000_001],
    ['203.0.113.7 - - [01/Jan/2026:02:00:00 +0200] "GET / HTTP/1.1" 200 5', 1767225600_000_000],
    ['1767225600', 1767225600_000_000],
    ['1767225600.5 alice', 1767225600_500_000],
    ['1767225600123 ms', 1767225600_123_000],
    ['12.75', 12_750_000],
    ['0s', 0],
    ['no time at all', null],
    ['[01/Foo/2026:02:00:00 +0200]', null],
  ])('%s', (line, want) => expect(timeOf(line)).toBe(want))
})

describe('fromLog', () => {
  it('leaves alone what the server reads', () => {
    const log = '2026-01-01T00:00:00Z alice 2\n2026-01-01T00:00:01.5Z bob\n2026-01-01T00:00:02+01:00'
    expect(fromLog(log + '\n\n# the end\n')).toEqual({ log, requests: 3, skipped: 0 })
    for (const line of ['1767225600', '1767225600.25 alice', '10:30:15 alice 3', '1.5s', '250ms bob']) expect(fromLog(line).log).toBe(line)
  })
  it('takes the times out of anything else', () => {
    expect(fromLog('203.0.113.7 - - [01/Jan/2026:02:00:00 +0200] "GET / HTTP/1.1" 200 5\nnothing\n{"ts":1767225600.5}\n')).toEqual({
      log: '1767225600.000000\n1767225600.500000', requests: 2, skipped: 1,
    })
    expect(fromLog('12.75 a b c d\n0').log).toBe('12750000us\n0us')
  })
  it('is nothing without a time', () => {
    expect(fromLog('a\nb')).toEqual({ log: '', requests: 0, skipped: 2 })
    expect(fromLog('')).toEqual({ log: '', requests: 0, skipped: 0 })
  })
})
