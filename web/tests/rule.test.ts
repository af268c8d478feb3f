import { describe, expect, it } from 'vitest'
import { addTo, fieldOf, fromQuota, fromWords, isListed, offsetOf, quota, read, removeFrom, set, words } from '../src/rule'

const login = `id: login # of people
match: {method: POST, path: /api/login}
key: ip
limit: 5/1m
`

describe('a rule as text', () => {
  it('is read', () => {
    expect(read(login)).toEqual({ id: 'login', match: { method: 'POST', path: '/api/login' }, key: 'ip', limit: '5/1m' })
    expect(read('')).toEqual({})
    expect(read('[1, 2]')).toBeNull()
    expect(read('a: [')).toBeNull()
  })
  it('changes in one place and keeps its comments', () => {
    expect(set(login, ['limit'], '9/1m')).toBe(login.replace('5/1m', '9/1m'))
    expect(set(login, ['match', 'path'], ['/a', '/b'])).toContain('match: {method: POST, path: [/a, /b]}')
  })
  it('gets new fields where people look for them', () => {
    const changed = set(set(login, ['mode'], 'shadow'), ['description'], 'stop: guessing')
    expect(changed.split('\n').map((line) => line.split(':')[0])).toEqual(['id', 'description', 'match', 'key', 'limit', 'mode', ''])
    expect(read(changed)?.description).toBe('stop: guessing')
  })
  it('loses a field, and what is empty without it', () => {
    expect(read(set(set(login, ['match', 'method'], undefined), ['match', 'path'], undefined))).toEqual({ id: 'login', key: 'ip', limit: '5/1m' })
  })
  it('begins with nothing', () => expect(read(set('', ['id'], 'new'))).toEqual({ id: 'new' }))
  it('is left alone while it cannot be read', () => expect(set('a: [', ['id'], 'x')).toBe('a: ['))
  it('keeps hostile text as text', () => {
    const text = '<img src=x onerror=alert(1)> # & * ! {}'
    expect(read(set(login, ['description'], text))?.description).toBe(text)
  })
})

describe('words and quotas', () => {
  it.each([['', undefined], ['a', 'a'], [' a , b,', ['a', 'b']]])('%j', (text, want) => expect(fromWords(text)).toEqual(want))
  it.each(['100/1m', '50/1s, 10000/1d', 'unlimited', '1000/1m burst 2000', '50/1s, 1000/1h burst 70'])('%s', (text) => {
    expect(quota(fromQuota(text))).toBe(text)
  })
  it('writes lists', () => expect([words(['a', 'b']), words('a'), words(undefined)]).toEqual(['a, b', 'a', '']))
})

describe('problems', () => {
  it.each([
    ['limit', 'limit'], ['limits', 'limit'], ['match.path', 'path'], ['match.attributes.action', 'attributes'], ['deny.status', 'status'],
    ['match', 'match'], ['match.pth', 'match'], ['tiers.pro.burst', 'tiers'], ['kye', ''], [undefined, ''],
  ])('of %s are shown in %s', (field, want) => {
    expect(fieldOf({ severity: 'error', code: 'E000', message: 'it is wrong', ...(field ? { field } : {}) })).toBe(want)
  })
  it('have a place in the text', () => {
    expect(login.slice(offsetOf(login, 3, 1)).startsWith('key: ip')).toBe(true)
    expect(offsetOf(login, 99, 1)).toBe(login.length)
  })
})

describe('lists of a document', () => {
  const head = '# Mine.\nrules:\n    -   {id: api,   key: user, limit: 5/1m}   # odd, but mine\n'
  it.each([
    [head, head + 'block: {user: ["mallory"]}\n'],
    [head + 'block: {user: [eve]} # bad people\n', head + 'block: {user: [eve, "mallory"]} # bad people\n'],
    [head + 'block:\n  user: [ eve ]\n  ip: [203.0.113.0/24]\n', head + 'block:\n  user: [ eve, "mallory"]\n  ip: [203.0.113.0/24]\n'],
  ])('take one more and stay as they were', (before, after) => expect(addTo(before, 'block', 'user', 'mallory')).toBe(after))

  it.each([
    head + 'block:\n  user:\n    - eve # since May\n', head + 'block: {user: eve}\n', head + 'block: {ip: [203.0.113.66]}\n',
    head + 'block: {user: []}\n', '{rules: []}', 'rules: []\nexempt: {user: [mallory]}\n',
  ])('take one more, whatever they look like: %j', (before) => {
    const after = addTo(before, 'block', 'user', 'mallory')
    const got = read(after) as never as { block: { user: string[] }; rules: unknown }
    expect(isListed(got.block, 'user', 'mallory')).toBe(true)
    expect(isListed(got.block, 'user', 'eve')).toBe(before.includes('eve'))
    expect(got.rules).toEqual((read(before) as never as { rules: unknown }).rules)
    for (const comment of ['# Mine.', '# odd, but mine', '# since May']) expect(after.includes(comment)).toBe(before.includes(comment))
  })

  it('take hostile names as text', () => {
    for (const name of ['a: b, c]', '"', '</script>', 'x # y', '\u202e', '*']) {
      const got = read(addTo(head, 'block', 'user', name)) as never as { block: { user: string[] } }
      expect(got.block.user).toEqual([name])
    }
  })
  it('do not take the same twice', () => expect(addTo(head + 'block: {user: [eve]}\n', 'block', 'user', 'eve')).toBe(head + 'block: {user: [eve]}\n'))
  it('give back', () => {
    const both = addTo(addTo(head, 'block', 'user', 'eve'), 'block', 'user', 'mallory')
    expect((read(removeFrom(both, 'block', 'user', 'eve')) as never as { block: unknown }).block).toEqual({ user: ['mallory'] })
    expect(read(removeFrom(addTo(head, 'block', 'user', 'eve'), 'block', 'user', 'eve'))).toEqual(read(head))
    expect(removeFrom(head, 'block', 'user', 'nobody')).toBe(head)
  })
  it('of a text that cannot be read are denied', () => expect(() => addTo('a: [', 'block', 'ip', '1.2.3.4')).toThrow())
})
