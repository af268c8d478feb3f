import { describe, expect, it } from 'vitest'
import { besides, escape, hashAPIKey, isHash, listed, parts } from '../src/key'

describe('keys', () => {
  it.each([
    ['user:alice', [{ kind: 'user', value: 'alice' }]],
    ['global', [{ kind: 'global', value: '' }]],
    ['ip:2001:db8::/64', [{ kind: 'ip', value: '2001:db8::/64' }]],
    ['header:X-Tenant:acme:1', [{ kind: 'header:X-Tenant', value: 'acme:1' }]],
    ['user:a\\|b\\\\c|ip:203.0.113.7', [{ kind: 'user', value: 'a|b\\c' }, { kind: 'ip', value: '203.0.113.7' }]],
    ['user:\\sha256:00', [{ kind: 'user', value: '\\sha256:00' }]],
    ['', [{ kind: '', value: '' }]],
  ])('%j', (key, want) => expect(parts(key)).toEqual(want))

  it('tells keys of one client apart', () => {
    expect(besides('user:alice|method:*|route:/a\\|b/{id}', 'user:alice')).toBe('method * · route /a|b/{id}')
    expect(besides('user:alice', 'user:alice')).toBe('')
  })

  it('escapes so that parts gives it back', () => {
    for (const value of ['a|b', '\\', '\\|', 'x', 'a\nb']) {
      expect(parts('user:' + escape(value))).toEqual([{ kind: 'user', value }])
    }
  })

  it('lists what can be blocked', () => {
    expect(listed('user:alice|ip:203.0.113.7|attr:region:eu')).toEqual([
      { list: 'user', value: 'alice' }, { list: 'ip', value: '203.0.113.7' },
    ])
    expect(listed('global')).toEqual([])
  })

  // printf 'weir:api_key:%s' secret | sha256sum | cut -c1-32
  it('hashes API keys as the server does', async () => {
    const hash = await hashAPIKey('secret')
    expect(hash).toBe('sha256:bbde687893a0eaefe80d857a47f3380e')
    expect(isHash(hash!)).toBe(true)
    expect(isHash('sha256:short')).toBe(false)
  })
})
