import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { en, type Word } from '../src/words/en'
import { alerts, details, idle, problems, titles } from '../src/words/server.zh'
import { speech } from '../src/words/language.svelte'
import { alert, author, noEffect, problem, t, trouble } from '../src/words/words.svelte'
import { zh } from '../src/words/zh'

const words = Object.keys(en) as Word[]
const places = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()

function sources(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? sources(join(dir, entry.name)) : /\.(svelte|ts)$/.test(entry.name) ? [join(dir, entry.name)] : [],
  )
}
const src = join(import.meta.dirname, '../src')
const code = sources(src).filter((file) => !file.includes('words/en') && !file.includes('words/zh')).map((file) => [file, readFileSync(file, 'utf8')] as const)

describe('the dictionaries', () => {
  it('have the same words', () => expect(Object.keys(zh).sort()).toEqual([...words].sort()))
  it.each(words)('%s is said in both, with the same values', (word) => {
    expect(en[word].trim()).not.toBe('')
    expect(zh[word].trim()).not.toBe('')
    expect(places(zh[word])).toEqual(places(en[word]))
  })
  it('are used, every word', () => {
    const all = code.map(([, text]) => text).join('\n')
    const dynamic = [...all.matchAll(/`([a-z.]+)\$\{/g)].map((m) => m[1]!)
    const unused = words.filter((word) => !all.includes(`'${word}'`) && !dynamic.some((prefix) => word.startsWith(prefix)))
    expect(unused).toEqual([])
  })
})

describe('alerts', () => {
  const api = readFileSync(join(import.meta.dirname, '../../internal/server/httpapi/openapi.yaml'), 'utf8')
  const kinds = api.match(/kind: \{enum: \[([a-z_, ]+test)\]\}/)![1]!.split(', ')
  it('have a Chinese sentence for every kind', () => expect(Object.keys(alerts).sort()).toEqual(kinds.sort()))
  it('are said in the language of the page', () => {
    const a = { kind: 'drop', summary: 'traffic has fallen', value: 0.4 }
    speech.language = 'zh'
    expect(alert(a)).toBe('流量降到此前的 40\u00a0%。')
    expect(alert({ ...a, kind: 'slow', value: 3 })).toBe('判定变慢：p99 是此前的 3 倍。')
    expect(alert({ ...a, kind: 'denied' })).toBe('40\u00a0% 的客户端被限额拒绝。')
    expect(alert({ ...a, kind: 'denied', rule: 'api' })).toBe('40\u00a0% 的客户端被限额拒绝；拒绝次数最多的规则是 api。')
    expect(alert({ ...a, kind: 'hot_key', subject: '{rule}[x]', rule: 'api' })).toBe('客户端 {rule}[x] 占全部拒绝的 40\u00a0%，拒绝它最多的规则是 api。')
    expect(alert({ ...a, kind: 'new' })).toBe(a.summary)
    speech.language = 'en'
    expect(alert(a)).toBe(a.summary)
  })
  it.each([
    ['3 of 4 clients (75.0 %) are denied by limits; most denials are by the rule api.', '3 of 4 clients (75\u00a0%) are denied by limits; most denials are by the rule api.'],
    ['23.1 % of requests to upstreams failed.', '23.1\u00a0% of requests to upstreams failed.'],
    ['The client "user:5 %" has 51.0 % of all denials.', 'The client "user:5 %" has 51\u00a0% of all denials.'],
  ])('have their number as the page writes it: %s', (summary, want) => expect(alert({ kind: 'denied', summary, value: 0 })).toBe(want))
})

describe('words', () => {
  it('follow a number', () => {
    expect(t('history.gap', { n: 1 })).toBe('1 unchanged line')
    expect(t('history.gap', { n: '21' })).toBe('21 unchanged lines')
    expect(t('replay.lines', { n: '1', bad: 0 })).toBe('1 request, 0 lines that were not understood')
  })
  it('follow a number in one or in many, unless the number is always the same', () => {
    const fixed = ['overview.share.smoothed', 'outage.mend.first']
    const plural = words.filter((word) => /\{(n|all|opened|capacity)\} (?:(?!is\b|was\b|as\b)[a-z]+s|are)\b/.test(en[word]) && !fixed.includes(word))
    expect(plural).toEqual([])
  })
  it('say how a version came that nobody signed', () => {
    expect(['http', 'file', 'alice', undefined].map((name) => author(name))).toEqual(['HTTP API, without a token', 'rules file', 'alice', '?'])
  })
})

describe('overrides without effect', () => {
  const api = readFileSync(join(import.meta.dirname, '../../internal/server/httpapi/openapi.yaml'), 'utf8')
  const codes = api.match(/no_effect_code: \{enum: \[([a-z_, ]+)\]/)![1]!.split(', ')
  it('have a Chinese sentence for every code', () => expect(Object.keys(idle).sort()).toEqual(codes.sort()))
  it('are said in the language of the page', () => {
    const o = { rule: 'api', no_effect: 'The rule is off.', no_effect_code: 'rule_off' }
    speech.language = 'zh'
    expect(noEffect(o)).toBe('没有生效：规则 api 已停用。')
    expect(noEffect({ ...o, no_effect_code: 'new' })).toBe(o.no_effect)
    expect(noEffect({ rule: 'api' })).toBe('')
    speech.language = 'en'
    expect(noEffect(o)).toBe(o.no_effect)
  })
})

describe('problems of the API', () => {
  const api = readFileSync(join(import.meta.dirname, '../../internal/server/httpapi/openapi.yaml'), 'utf8')
  const types = [...api.matchAll(/- urn:weir:problem:([a-z-]+)/g)].map((m) => m[1]!)
  it('have a Chinese title for every type', () => expect(Object.keys(titles).sort()).toEqual([...new Set(types)].sort()))
  it('have a Chinese sentence for every code', () => {
    const codes = api.match(/ {8}code:\n.*\n {10}enum:\n((?: {12}- [a-z-]+\n)+)/)![1]!.match(/[a-z]+(-[a-z]+)*/g)!
    expect(codes.length).toBeGreaterThan(30)
    expect(codes.filter((code) => !details[code])).toEqual([])
    const known = [...codes, ...types, 'quota-exceeded']
    expect(Object.keys(details).filter((name) => !known.includes(name))).toEqual([])
  })
  it('are said in the language of the page', () => {
    const p = { type: 'urn:weir:problem:bad-field', detail: 'comment: 900 bytes …', code: 'too-long', field: 'comment', params: { bytes: 900, max: 500 } }
    speech.language = 'zh'
    expect(trouble(p)).toBe('comment 有 900 字节，超过上限 500，请缩短。')
    expect(trouble({ ...p, code: 'unknown-name', params: { name: 'usr', near: 'user' } })).toBe('没有名为 usr 的字段或参数，可能是 user。')
    expect(trouble({ type: 'urn:weir:problem:no-rule', detail: 'There is none.', params: { rule: 'api' } })).toBe('没有规则 api，请查看规则列表。')
    expect(trouble({ type: 'urn:weir:problem:bad-field', detail: 'Write it so.' })).toBe('值无效：Write it so.')
    expect(trouble({ type: 'urn:weir:problem:new', detail: 'Try again.' })).toBe('Try again.')
    speech.language = 'en'
    expect(trouble(p)).toBe(p.detail)
  })
})

describe('problems of rules', () => {
  const codes = [...readFileSync(join(import.meta.dirname, '../../rule/codes.go'), 'utf8').matchAll(/\{"([EW]\d{3})"/g)].map((m) => m[1]!)
  it('have a Chinese sentence for every code', () => {
    expect(codes.length).toBeGreaterThan(35)
    expect(Object.keys(problems).sort()).toEqual(codes.sort())
  })
  it('are said in the language of the page', () => {
    const p = { code: 'E013', field: 'limit', message: '"5" has no period' }
    speech.language = 'en'
    expect(problem(p)).toBe(p.message)
    speech.language = 'zh'
    expect(problem(p)).toBe('limit：' + problems.E013)
    expect(problem({ message: 'something new' })).toBe('something new')
    expect(problem({ code: 'W021', message: 'a copy is in $&' })).toMatch(/^保存的规则.*：a copy is in \$&$/)
    speech.language = 'en'
  })
})

// What a client calls itself is shown as text, because nothing on the page can do
// otherwise.
describe('the page', () => {
  it.each(code.map(([file, text]) => [file.slice(src.length + 1), text]))('%s writes no markup of its own', (_, text) => {
    expect(text).not.toMatch(/\{@html|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/)
  })
  it.each(code.map(([file, text]) => [file.slice(src.length + 1), text]))('%s has no style that the policy denies', (_, text) => {
    expect(text).not.toMatch(/\sstyle="/)
  })
  it('keeps no token', () => {
    for (const [file, text] of code) {
      expect([file, /sessionStorage|document\.cookie|indexedDB/.test(text)]).toEqual([file, false])
      if (!file.endsWith('language.svelte.ts')) expect([file, text.includes('localStorage')]).toEqual([file, false])
    }
  })
})
