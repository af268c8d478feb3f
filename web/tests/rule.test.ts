import { describe, expect, it } from 'vitest'
import type { Rule } from '../src/api/types'
import { algorithmOf, applies, entries, failure, fieldAt, fieldOf, fromQuota, fromWords, isListed, limitList, offsetOf, quota, set, times, words } from '../src/rule'
import { trialOf } from '../src/trial'

const login: Rule = { id: 'login', match: { method: 'POST', path: '/api/login' }, key: 'ip', limit: '5/1m' }

describe('what a rule does while the store is unavailable', () => {
  it.each<[Partial<Rule>, string]>([
    [{}, 'open'],
    [{ unit: 'tokens' }, 'local'],
    [{ on_failure: 'closed' }, 'closed'],
    [{ on_failure: { local: '1m', then: 'closed' } }, 'local 1m, then closed'],
    [{ on_failure: { local: '1m', limit: '10/1m', then: 'open' } }, 'local 1m, limit 10/1m, then open'],
    [{ on_failure: { limit: '10/1m' } }, 'local, limit 10/1m'],
  ])('%j: %s', (fields, want) => expect(failure({ ...login, ...fields })).toBe(want))
})

describe('a rule in a form', () => {
  it('changes in one place, and what it was made of stays as it was', () => {
    const before = JSON.stringify(login)
    expect(set(login, ['limit'], '9/1m')).toEqual({ ...login, limit: '9/1m' })
    expect(set(login, ['match', 'path'], ['/a', '/b']).match).toEqual({ method: 'POST', path: ['/a', '/b'] })
    expect(JSON.stringify(login)).toBe(before)
  })
  it('keeps the order of its fields', () => expect(Object.keys(set(login, ['key'], 'user'))).toEqual(Object.keys(login)))
  it('gets new fields, within others, too', () => expect(set(login, ['deny', 'code'], 7).deny).toEqual({ code: 7 }))
  it('loses a field, and what is empty without it', () => {
    expect(set(set(login, ['match', 'method'], undefined), ['match', 'path'], undefined)).toEqual({ id: 'login', key: 'ip', limit: '5/1m' })
    expect(set(login, ['deny', 'code'], undefined)).toEqual(login)
  })
  it('takes a field that was none before', () => expect(set({ ...login, match: 'x' as never }, ['match', 'path'], '/a').match).toEqual({ path: '/a' }))
  it('says to what it applies', () => {
    expect(applies(login)).toBe('POST /api/login')
    expect(applies({ id: 'a', key: 'ip', match: { attributes: { action: ['a', 'b'] } } })).toBe('action=a, b')
    expect(applies({ id: 'a', key: 'ip' })).toBe('')
  })
})

describe('words and quotas', () => {
  it.each([['', undefined], ['a', 'a'], [' a , b,', ['a', 'b']]])('%j', (text, want) => expect(fromWords(text)).toEqual(want))
  it.each(['100/1m', '50/1s, 10000/1d', 'unlimited', '1000/1m burst 2000', '50/1s, 1000/1h burst 70', '10000/month starts 15', '10/1s, 500/year burst 20 zone Asia/Shanghai starts 04-01', '5/1d zone UTC'])('%s', (text) => {
    expect(quota(fromQuota(text))).toBe(text)
  })
  it('writes a priority', () => expect(quota({ limit: '5/1m', concurrency: 2, priority: 'high' })).toBe('5/1m concurrency 2 priority high'))
  it('reads a priority', () => expect(fromQuota('5/1m concurrency 2 priority high')).toEqual({ limit: '5/1m', concurrency: 2, priority: 'high' }))
  it('reads a concurrency alone', () => expect(fromQuota('concurrency 5')).toEqual({ concurrency: 5 }))
  it('reads options in any order', () => expect(fromQuota('5/month starts 31 zone UTC')).toEqual({ limit: '5/month', zone: 'UTC', starts: 31 }))
  it.each([
    [{ limit: '5/month' }, 'fixed_window'], [{ limit: '5/day' }, 'token_bucket'], [{ limit: '5/day', zone: 'UTC' }, 'fixed_window'],
    [{ limit: '5/1d', starts: '06:00' }, 'fixed_window'], [{ limit: '5/1w', starts: 'monday' }, 'fixed_window'], [{ limit: '5/1d', starts: 15 }, 'token_bucket'],
    [{ limit: '20usd/day' }, 'fixed_window'], [{ limit: '$0.50/hour' }, 'fixed_window'], [{ limit: '20usd/1m' }, 'token_bucket'], [{ limit: '20eur/day' }, 'fixed_window'],
    [{ limits: ['5/1s', '9/month'] }, 'token_bucket'], [{ limit: '5/1m', zone: 'UTC' }, 'token_bucket'], [{ limit: '5/1m', algorithm: 'sliding_log' }, 'sliding_log'],
  ])('counts %j by %s', (of, want) => expect(algorithmOf({ id: 'a', key: 'user', ...of })).toBe(want))
  it('writes nothing for nothing', () => expect(words(undefined)).toBe(''))
  it('lists limits', () => expect([limitList({}), limitList({ limit: 'a' }), limitList({ limits: ['a', 'b'] })]).toEqual([[], ['a'], ['a', 'b']]))
  it.each([
    ['100/1m', 2, '200/1m'], ['100/1m burst 20', 10, '1000/1m burst 200'], ['3/1m, 20/1h', 2, '6/1m, 40/1h'],
    ['5/10s', 0.5, '3/10s'], ['1/1m', 0.5, '1/1m'], ['20usd/day', 2, '40usd/day'], ['0.5eur/day', 0.1, '0.05eur/day'], ['0.25usd/hour, 1.5usd/day', 0.5, '0.125usd/hour, 0.75usd/day'], ['unlimited', 2, 'unlimited'],
  ])('%s times %d', (limit, factor, want) => expect(times(limit, factor)).toBe(want))
})

describe('a copy to try another limit', () => {
  const about = (period_s: number, tier = '') => ({ tier, period_s })
  it('has the limit of one period, and only counts', () => {
    const rule: Rule = { ...login, algorithm: 'sliding_log', limits: ['3/1m', '20/1h'] }
    delete rule.limit
    expect(trialOf(rule, about(3600), 50)).toEqual({ ...rule, id: 'login-trial', mode: 'shadow', limits: ['3/1m', '50/1h'] })
    expect(trialOf({ ...login, algorithm: 'fixed_window' }, about(60), 8)).toMatchObject({ limit: '8/1m' })
  })
  it('has an amount of dollars', () => expect(trialOf({ id: 'spend', key: 'user', limit: '20usd/day' }, about(86_400), 25_500_000)).toMatchObject({ limit: '25.5usd/day' }))
  it('has an amount of another currency', () => expect(trialOf({ id: 'spend', key: 'user', limit: '20eur/day' }, about(86_400), 25_500_000)).toMatchObject({ limit: '25.5eur/day' }))
  it('has the capacity of a bucket', () => expect(trialOf(login, about(60), 8)).toMatchObject({ limit: '5/1m', burst: 8 }))
  it('is about a tier', () => {
    const rule: Rule = { ...login, algorithm: 'fixed_window', tiers: { pro: '50/1m', other: { limit: '70/1m' } } }
    expect(trialOf(rule, about(60, 'pro'), 60).tiers).toEqual({ pro: { limit: '60/1m' }, other: { limit: '70/1m' } })
    expect(trialOf(rule, about(60, 'pro'), 60).limit).toBe('5/1m')
  })
})

describe('where problems are shown', () => {
  it.each([
    ['key', 'key'], ['match.path', 'path'], ['match.attributes', 'attributes'], ['match', 'match'], ['limits', 'limit'],
    ['limits.0', 'limit'], ['deny.status', 'status'], ['tiers.pro', 'tiers'], ['overrides', 'overrides'], ['block: ip', ''], ['', ''],
  ])('%s is %s', (field, want) => {
    expect(fieldOf({ severity: 'error', code: 'E001', message: '', field })).toBe(want)
    expect(fieldAt(field.split('.'))).toBe(want)
  })
  it.each([[1, 1, 0], [2, 3, 6], [9, 1, 8]])('line %d, column %d', (line, column, want) => expect(offsetOf('abc\ndefg', line, column)).toBe(want))
})

describe('lists', () => {
  const list = { ip: ['10.0.0.0/8'], user: 'alice', api_key: [] }
  it('has one or several', () => {
    expect(entries(list)).toEqual([{ kind: 'ip', value: '10.0.0.0/8' }, { kind: 'user', value: 'alice' }])
    expect(entries(undefined)).toEqual([])
    expect([isListed(list, 'user', 'alice'), isListed(list, 'ip', 'alice')]).toEqual([true, false])
  })
})
