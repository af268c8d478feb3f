// The words of the page in its language.

import { enough, quiet } from '../chart'
import { duration, multiple, share } from '../format'
import { en, type Word } from './en'
import { speech, type Language } from './language.svelte'
import { alerts, details, idle, problems, titles } from './server.zh'
import { zh } from './zh'

const dictionaries: Record<Language, Record<Word, string>> = { en, zh }

// t is a word or sentence in the language of the page, with values in the places that
// are named in braces: {n}, or {n|line|lines} for what follows a number.
export function t(word: Word, values: Record<string, string | number> = {}): string {
  return dictionaries[speech.language][word].replace(/\{(\w+)(?:\|(.*?)\|(.*?))?\}/g, (place, name: string, one?: string, many = '') =>
    one ? (String(values[name]) === '1' ? one : many) : name in values ? String(values[name]) : place,
  )
}

// has tells whether there is such a word, for what servers say and pages may not know.
export function has(word: string): boolean {
  return Object.hasOwn(en, word)
}

// algorithm is the name of an algorithm as rules have it, and behind it what people call it
// if that is something else. What a server says of "leaky_bucket shape" stays as it is.
export function algorithm(name: string): string {
  const id = name.split(' ', 1)[0]!
  const word = `algorithm.${id}`
  const called = has(word) ? t(word as Word) : ''
  return called === '' || called === id.replaceAll('_', ' ') ? name : `${name} (${called})`
}

// problem is what is wrong with a rule: what the server says, or, in the language of the
// page, what its code means and the field that it is about.
export function problem(p: { code?: string; field?: string; message: string }): string {
  const said = speech.language === 'zh' && problems[p.code ?? '']?.replace('{message}', () => p.message)
  return said ? (p.field ? `${p.field}：${said}` : said) : p.message
}

// trouble is why a call failed: what the server says, or the same in the language of the page.
// If only the title of the problem is known there, it comes before what the server says.
export function trouble(p: { type: string; detail: string; code?: string; field?: string; params?: Record<string, unknown> }): string {
  if (speech.language !== 'zh') return p.detail
  const type = p.type.replace(/^.*[:#]/, '')
  const said = details[p.code || type]
  if (said) return fill(said, { ...p.params, field: p.field })
  return titles[type] ? `${titles[type]}：${p.detail}` : p.detail
}

// author is who wrote a version or an override. Without a token, servers name the way it came.
export function author(name = '?'): string {
  const word = `author.${name}`
  return has(word) ? t(word as Word) : name
}

// change is what a version of the rules changed, and who wrote it.
export const change = (v: { number: number; author?: string; summary?: string }): string =>
  t('overview.mark.rules', { n: v.number, text: [v.summary, author(v.author)].filter(Boolean).join(' – ') })

// alert is what an alert says: what the server says, with its last number as the page writes
// shares, or the same in the language of the page. Before that number may be a key, which stays.
export function alert(a: { kind: string; summary: string; value: number; subject?: string; rule?: string; instance?: string }): string {
  const said = speech.language === 'zh' && alerts[a.kind]
  return said ? fill(said, { ...a, value: multiple(a.kind, a.value, 'zh') }) : a.summary.replace(/(?<![\d.])([\d.]+) %(?!.* %)/s, (_, n: string) => share(Number(n) / 100, 'en'))
}

// alertKind names a kind of alert. A server may know kinds that this page does not.
export function alertKind(kind: string): string {
  const word = `alerts.kind.${kind}`
  return has(word) ? t(word as Word) : kind
}

// noEffect is why an override has none: what the server says, or the same in the language of the
// page.
export function noEffect(o: { rule: string; no_effect?: string; no_effect_code?: string }): string {
  const said = speech.language === 'zh' && idle[o.no_effect_code ?? '']
  return said ? fill(said, o) : (o.no_effect ?? '')
}

// fill puts values into a text. A part in brackets whose values are not all there is left out.
export function fill(text: string, values: Record<string, unknown>): string {
  const has = (name: string) => values[name] !== undefined && values[name] !== ''
  return text
    .replace(/\[([^\]]*)\]/g, (_, part: string) => ([...part.matchAll(/\{(\w+)\}/g)].every((m) => has(m[1]!)) ? part : ''))
    .replace(/\{(\w+)\}/g, (_, name: string) => (has(name) ? String(values[name]) : ''))
}

// smoothedNote says of a share over how many steps its values reach, if over more than one.
export const smoothedNote = (widest: number, step: number): string =>
  widest > 1 ? t('overview.share.smoothed', { n: enough, time: duration(widest * step * 1000), gap: duration(quiet * step * 1000) }) : ''
