import { describe, expect, it } from 'vitest'
import type { Denial } from '../src/api/limits'
import { behind } from '../src/behind'

const denial = (more: Partial<Denial>): Denial => ({
  at: 1000, key: 'user:a', rule: 'api', method: 'GET', path: '/a', address: '192.0.2.1', tier: '', cost: 1, shadow: false, blocked: false, instance: '', ...more,
})

describe('what is behind denials', () => {
  it('is counted, the most first', () => {
    expect(behind([denial({}), denial({ path: '/b', address: '' }), denial({ path: '/b' }), denial({ path: '/b', rule: 'b' })], 1001)).toEqual({
      n: 4,
      endpoints: [{ name: 'GET /b', rule: 'api', n: 2 }, { name: 'GET /a', rule: 'api', n: 1 }, { name: 'GET /b', rule: 'b', n: 1 }],
      addresses: [{ name: '192.0.2.1', n: 3 }, { name: '', n: 1 }],
    })
  })
  it('is of the last five minutes, without shadow rules', () => expect(behind([denial({ at: 700 }), denial({ shadow: true })], 1000)).toEqual({ n: 0, endpoints: [], addresses: [] }))
  it('takes any name for a name', () => expect(behind([denial({ method: '', path: '__proto__', rule: 'constructor' })], 1000).endpoints).toEqual([{ name: '__proto__', rule: 'constructor', n: 1 }]))
})
