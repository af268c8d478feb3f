import { describe, expect, it } from 'vitest'
import { ago, amount, clockTime, count, dash, duration, estimate, fromClockTime, latency, moment, moments, money, period, rate, share, tick, toDate, visible } from '../src/format'

// A number and its unit stay on one line.
const plain = (text: string) => text.replaceAll(/(?<=[\d.])\u00a0/g, ' ')

describe('numbers', () => {
  it.each([[0, '0'], [999, '999'], [12345, '12,345'], [1234567, '1.23M'], [null, dash], [NaN, dash]])('count %s', (n, want) => {
    expect(count(n, 'en')).toBe(want)
  })
  it.each([[0, '0'], [-1.5, '-1.5'], [1234567.000001, '1,234,567.000001'], [null, dash], [Infinity, dash]])('amount %s', (n, want) => {
    expect(amount(n, 'en')).toBe(want)
  })
  it.each([[0, '$0.00'], [1_500_000, '$1.50'], [12_500, '$0.0125'], [1_234_567_000_001, '$1,234,567.000001'], [undefined, dash]])('money %s', (n, want) => {
    expect(money('usd', n, 'en')).toBe(want)
  })
  it('has other currencies', () => expect([money('eur', 1_500_000, 'en'), money('jpy', 2_500_000, 'en')]).toEqual(['€1.50', '¥2.50']))
  it.each([[46.661632, '46.7'], [640, '640'], [12345.6, '12,300'], [0.0123456, '0.0123'], [undefined, dash]])('estimate %s', (n, want) => {
    expect(estimate(n, 'en')).toBe(want)
  })
  it('counts in Chinese', () => expect(count(1234567, 'zh')).toBe('123万'))
  it.each([[0, '0'], [0.123, '0.12'], [12.34, '12.3'], [1234, '1,234'], [45678, '45.7K'], [undefined, dash]])('rate %s', (n, want) => {
    expect(rate(n, 'en')).toBe(want)
  })
  it.each([[0, '0 %'], [0.00001, '<0.01 %'], [0.0012, '0.12 %'], [0.0512, '5.1 %'], [1, '100 %'], [0.999, '100 %'], [null, dash]])('share %s', (n, want) => {
    expect(plain(share(n, 'en'))).toBe(want)
  })
  it.each([[0, '0 µs'], [12.345, '12.3 µs'], [1500, '1.5 ms'], [2_500_000, '2.5 s'], [undefined, dash]])('latency %s', (n, want) => {
    expect(plain(latency(n, 'en'))).toBe(want)
  })
})

describe('times', () => {
  it.each([
    [0, '0 s'], [0.25, '0.25 ms'], [250, '250 ms'], [1000, '1 s'], [59_999, '1 min'], [65_000, '1 min 5 s'], [3_600_000, '1 h'],
    [3_605_000, '1 h'], [3_900_000, '1 h 5 min'], [90_000_000, '1 d 1 h'], [null, dash],
  ])('duration %s', (ms, want) => expect(plain(duration(ms))).toBe(want))
  it.each([['100/1m', 6e7], ['100/1m burst 20', 6e7], ['sliding_log 5/250ms', 250_000], ['3/minute', 6e7], ['3/2us', 2], ['1/d', 8.64e10], ['1/month', 2.629746e12], ['5/year zone UTC', 3.1556952e13], ['none', 0]])(
    'period of %s', (limit, want) => expect(period(limit)).toBe(want))
  it('takes both forms of a time', () => {
    expect(toDate(1767225600)?.toISOString()).toBe('2026-01-01T00:00:00.000Z')
    expect(toDate('2026-01-01T00:00:00Z')?.getTime()).toBe(1767225600_000)
    expect(toDate('nonsense')).toBeNull()
    expect(toDate(undefined)).toBeNull()
  })
  it('has 24 hours', () => {
    const evening = new Date(2026, 0, 2, 23, 5, 9).getTime() / 1000
    const midnight = new Date(2026, 0, 2, 0, 0, 5).getTime() / 1000
    for (const lang of ['en', 'zh']) {
      expect([moment(evening, lang), moment(midnight, lang)]).toEqual([expect.stringContaining('23:05:09'), expect.stringContaining('00:00:05')])
      expect([tick(evening, 1, lang), tick(midnight, 1, lang)]).toEqual(['23:05:09', '00:00:05'])
      expect(moment(evening, lang) + moment(midnight, lang)).not.toMatch(/AM|PM|[上下]午/)
    }
  })
  it('names a day once if a stretch of time has one', () => {
    const at = (...of: [number, number, number, number]) => new Date(2026, 0, ...of).getTime() / 1000
    for (const lang of ['en', 'zh']) {
      const [within, across] = [moments(at(1, 0, 0, 5), at(1, 23, 5, 9), lang), moments(at(1, 23, 5, 9), at(2, 0, 0, 5), lang)]
      expect(within).toMatch(/00:00:05.*23:05:09/)
      expect(across).toMatch(/23:05:09.*00:00:05/)
      expect([within.split('2026').length, across.split('2026').length]).toEqual([2, 3])
    }
  })
  it('writes a time for a field, and reads it back', () => {
    for (const seconds of [0, 1767225600, 1794730474]) expect(fromClockTime(clockTime(seconds))).toBe(seconds)
    expect(clockTime(1767225600)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/)
    expect(fromClockTime('')).toBeNull()
    expect(fromClockTime('soon')).toBeNull()
  })
  it('says how long ago', () => {
    expect(ago(1000, 1_000_000 + 7_200_000, 'en')).toBe('2 hours ago')
    expect(ago(1000, 1_005_000, 'zh')).toBe('5秒钟前')
    expect(ago('', 0, 'en')).toBe(dash)
  })
})

describe('visible', () => {
  it.each([
    ['user:alice', 'user:alice'], ['<b>&amp;', '<b>&amp;'], ['a\u202Ecila', 'a⟨202E⟩cila'], ['a\u200bb', 'a⟨200B⟩b'], ['a\nb\0', 'a⟨000A⟩b⟨0000⟩'],
    ['王 é 🦫 שלום', '王 é 🦫 שלום'], ['\u2066x\u2069', '⟨2066⟩x⟨2069⟩'],
  ])('%j', (text, want) => expect(visible(text)).toBe(want))
})
