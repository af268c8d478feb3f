// The client answers as the table that all clients share says.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from '@weirhq/client'
import { cases, url } from './support.mjs'

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase())
const minutes = (ms) => Math.ceil(ms / 60_000)

describe('cases', () => {
  const client = new Client({ url, timeoutMs: 30_000 })
  for (const { name, steps } of cases('node').checks) {
    test(name, async () => {
      let hold
      const calls = {
        check: (s) => client.check(requestOf(s)),
        peek: (s) => client.peek(requestOf(s)),
        charge: (s) => client.charge(requestOf(s)),
        reserve: async (s) => {
          const reserved = await client.reserve(requestOf(s), { ttlMs: (s.ttl_minutes ?? 0) * 60_000 })
          hold = reserved.hold
          assert.equal(hold.id !== '', hold.expiresAt instanceof Date)
          return reserved.verdict
        },
        hold: (s) => (hold = client.hold(s.hold)),
        settle: (s) => hold.settle(s.used),
        cancel: () => hold.cancel(),
        extend: (s) => hold.extend(s.ttl_minutes * 60_000),
      }
      for (const [i, step] of steps.entries()) {
        let got
        let code = ''
        try {
          got = await calls[step.call](step)
        } catch (error) {
          code = error.code
        }
        assert.equal(code, step.error ?? '', `step ${i + 1}`)
        if (!code) assertWithin(step.want, got, `step ${i + 1}`)
      }
    })
  }
})

// What comes of a call about counters, as a list of numbers.
const countings = {
  add: (c, s) => c.add(s.counters),
  set: (c, s) => c.set(s.counters),
  reset: (c, s) => c.reset(s.counters),
  get: (c, s) => c.get(s.names, s),
  history: async (c, s) => {
    const [points] = await c.history(s.names, s)
    assert.equal(points.at(-1).start instanceof Date, s.window !== undefined)
    return [points.length, points.reduce((sum, point) => sum + point.value, 0)]
  },
  observe: async (c, s) => (await c.observe(s.counters)) ?? [],
  distributions: async (c, s) => {
    const [{ points, merged: m }] = await c.distributions(s.names, s)
    return [points.length, m.count, m.sum, m.mean, m.min, m.max, m.p50, m.p95, m.p99]
  },
}

test('counters', async () => {
  const { counters } = new Client({ url, timeoutMs: 30_000 })
  for (const [i, step] of cases('node').counters.entries()) {
    let got
    let code = ''
    try {
      got = await countings[step.call](counters, step)
    } catch (error) {
      code = error.code
    }
    assert.equal(code, step.error ?? '', `step ${i + 1}`)
    if (!code) assert.deepEqual(got, step.want, `step ${i + 1}`)
  }
  assert.deepEqual(await counters.add({ name: 'node-tenth', by: 0.1 + 0.2 }), [0.3]) // which is 0.30000000000000004
  for (const by of [NaN, Infinity]) await assert.rejects(counters.add({ name: 'node-tenth', by }), { code: 'invalid' })
})

const requestOf = (step) => Object.fromEntries(Object.entries(step.request).map(([name, value]) => [camel(name), value]))

function assertWithin(want, got, where) {
  if (Array.isArray(want)) {
    assert.equal(got.length, want.length, where)
    want.forEach((each, i) => assertWithin(each, got[i], `${where}[${i}]`))
  } else if (typeof want === 'object') {
    for (const [name, value] of Object.entries(want)) assertWithin(value, fieldOf(got, name), `${where}.${name}`)
  } else {
    assert.equal(got, want, where)
  }
}

function fieldOf(got, name) {
  if (name.endsWith('_minutes')) return minutes(got[camel(name.replace('_minutes', '_ms'))])
  if (name === 'pending' || name === 'open') return got.state === name
  return got[camel(name)]
}
