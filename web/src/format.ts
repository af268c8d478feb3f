// Numbers and times for people, in the language of the page if no other is given.

import { speech } from './words/language.svelte'

export const dash = '–'

// of is a number and its unit, which no line break parts.
const of = (n: string | number, unit: string) => `${n}\u00a0${unit}`

// count writes a number as briefly as it stays true: 999, 12,345, 1.23M.
export function count(n: number | null | undefined, lang: string = speech.language): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return dash
  const brief = Math.abs(n) >= 100_000
  return new Intl.NumberFormat(lang, brief ? { notation: 'compact', maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 }).format(n)
}

// left and limited are what is left of a limit, and what it is, as an amount if it counts money; used is the share that is used.
type Left = { remaining: number; limit: number; display?: { limit?: string; remaining?: string } }
export const left = (r: Left): string => r.display?.remaining ?? count(r.remaining)
export const used = (r: Left & { leased?: number }): number => Math.max(0, Math.min(1, 1 - (r.remaining + (r.leased ?? 0)) / Math.max(1, r.limit)))
export const limited = (r: Left): string => r.display?.limit ?? count(r.limit)

// money writes millionths of a currency, exactly: $13.37.
export const money = (currency: string, micros: number | null | undefined, lang: string = speech.language): string =>
  amount(micros === null || micros === undefined ? micros : micros / 1e6, lang, { style: 'currency', currency, currencyDisplay: 'narrowSymbol', minimumFractionDigits: 2, maximumFractionDigits: 6 })

// amount is what an application counts: exact to six decimals, and never shortened.
export function amount(n: number | null | undefined, lang: string = speech.language, options: Intl.NumberFormatOptions = { maximumFractionDigits: 6 }): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return dash
  return new Intl.NumberFormat(lang, options).format(n)
}

// estimate is an amount that is known to about a hundredth.
export const estimate = (n: number | null | undefined, lang: string = speech.language): string => amount(n, lang, { maximumSignificantDigits: 3 })

// rate is of something a second.
export function rate(n: number | null | undefined, lang: string = speech.language): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return dash
  const options: Intl.NumberFormatOptions =
    n >= 10_000 ? { notation: 'compact', maximumSignificantDigits: 3 } : { maximumFractionDigits: n < 10 ? 2 : n < 100 ? 1 : 0 }
  return new Intl.NumberFormat(lang, options).format(n)
}

// share is a part of one, as percent. What is little is not nothing.
export function share(n: number | null | undefined, lang: string = speech.language): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return dash
  const percent = (x: number, digits: number) => of(new Intl.NumberFormat(lang, { maximumFractionDigits: digits }).format(100 * x), '%')
  if (n > 0 && n < 0.0001) return '<' + percent(0.0001, 2)
  return percent(n, n < 0.01 ? 2 : n < 0.995 ? 1 : 0)
}

// latency is in microseconds.
export function latency(us: number | null | undefined, lang: string = speech.language): string {
  if (us === null || us === undefined || !Number.isFinite(us)) return dash
  const write = (n: number) => new Intl.NumberFormat(lang, { maximumSignificantDigits: 3 }).format(n)
  if (us < 1000) return of(write(us), 'µs')
  if (us < 1_000_000) return of(write(us / 1000), 'ms')
  return of(write(us / 1_000_000), 's')
}

const units: [number, string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

// duration is in milliseconds, with the two largest units: 1 h 5 min, 42 s, 250 ms.
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return dash
  if (ms <= 0) return of(0, 's')
  if (ms < 1000) return of(ms < 1 ? Math.round(ms * 1000) / 1000 : Math.round(ms), 'ms')
  let rest = Math.round(ms / 1000) * 1000
  const words: string[] = []
  for (const [size, unit] of units) {
    const n = Math.floor(rest / size)
    if (n > 0) words.push(of(n, unit))
    else if (words.length > 0) break
    rest -= n * size
    if (words.length === 2) break
  }
  return words.join(' ')
}

// period reads the period of a limit, such as the 1m of "100/1m burst 20", in
// microseconds; 0 if there is none.
export function period(limit: string): number {
  const found = /\/\s*(\d+(?:\.\d+)?)?\s*(us|ms|s|sec|second|m|min|minute|h|hour|d|day|w|week|month|year)\b/.exec(limit)
  if (!found) return 0
  const size: Record<string, number> = { us: 1, ms: 1e3, s: 1e6, m: 6e7, h: 3.6e9, d: 8.64e10, w: 6.048e11, month: 2.629746e12, year: 3.1556952e13 }
  const unit = found[2]!
  const known = unit in size ? unit : unit[0]!
  return Number(found[1] ?? 1) * size[known]!
}

// calendarName is the name of a period that is an average of the calendar; '' for others.
export const calendarName = (seconds: number): 'month' | 'year' | '' => (seconds === 2_629_746 ? 'month' : seconds === 31_556_952 ? 'year' : '')

const clock = (lang: string) => new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

// moment is a time, given in Unix seconds or as RFC 3339. Times have 24 hours, as on the axes.
export function moment(time: number | string | undefined, lang: string = speech.language): string {
  const date = toDate(time)
  return date ? clock(lang).format(date) : dash
}

// moments is a stretch of time, in Unix seconds; a date that both ends have is named once.
export const moments = (from: number, to: number, lang: string = speech.language): string => clock(lang).formatRange(from * 1000, to * 1000)

// zone is the time zone in which the page writes times, with its offset at a time:
// Europe/Berlin (GMT+1).
export function zone(lang: string = speech.language, time = Date.now() / 1000): string {
  const format = new Intl.DateTimeFormat(lang, { timeZoneName: 'shortOffset' })
  const name = format.resolvedOptions().timeZone
  const offset = format.formatToParts(time * 1000).find((part) => part.type === 'timeZoneName')?.value ?? ''
  return name === 'UTC' ? name : `${name} (${offset})`
}

// toDate takes what the API writes for a time.
export function toDate(time: number | string | undefined): Date | null {
  if (time === undefined || time === '' || time === 0) return null
  const date = new Date(typeof time === 'number' ? time * 1000 : time)
  return Number.isNaN(date.getTime()) ? null : date
}

const two = (n: number) => String(n).padStart(2, '0')

// clockTime is a time as a field for the date and time wants it, on the clock of whoever
// looks.
export function clockTime(seconds: number): string {
  const d = new Date(seconds * 1000)
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
}

// fromClockTime is what such a field says, in Unix seconds; null if it says nothing.
export function fromClockTime(text: string): number | null {
  const ms = text === '' ? NaN : new Date(text).getTime()
  return Number.isNaN(ms) ? null : Math.floor(ms / 1000)
}

// ago is how long since a time, roughly.
export function ago(time: number | string | undefined, now: number, lang: string = speech.language): string {
  const date = toDate(time)
  if (!date) return dash
  const seconds = Math.round((date.getTime() - now) / 1000)
  const words = new Intl.RelativeTimeFormat(lang, { numeric: 'auto' })
  for (const [size, unit] of [[86_400, 'day'], [3600, 'hour'], [60, 'minute']] as const) {
    if (Math.abs(seconds) >= size) return words.format(Math.trunc(seconds / size), unit)
  }
  return words.format(seconds, 'second')
}

// tick is a time on an axis whose labels are so many seconds apart.
export function tick(seconds: number, apart: number, lang: string = speech.language): string {
  const options: Intl.DateTimeFormatOptions =
    apart < 60
      ? { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }
      : apart < 86_400
        ? { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
        : { month: 'short', day: 'numeric' }
  const date = new Date(seconds * 1000)
  if (apart < 86_400 && apart >= 60 && date.getHours() === 0 && date.getMinutes() === 0) {
    return new Intl.DateTimeFormat(lang, { month: 'short', day: 'numeric' }).format(date)
  }
  return new Intl.DateTimeFormat(lang, options).format(date)
}

const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

// visible writes what cannot be seen, or turns text around, as its code: a key that
// looks like another's is a way to have the wrong one blocked.
export function visible(text: string): string {
  return text.replace(hidden, (c) => '⟨' + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0') + '⟩')
}

// multiple is the value of an alert: slow is a multiple of what it was before, everything else
// a share.
export function multiple(kind: string, n: number, language: string = speech.language): string {
  return kind === 'slow' ? rate(n, language) + (language === 'zh' ? ' 倍' : '×') : share(n, language)
}
