// Express and Fastify with a real weir answer as the table says.
import assert from 'node:assert/strict'
import { createServer, request as httpRequest } from 'node:http'
import { test } from 'node:test'
import express from 'express'
import Fastify from 'fastify'
import { Client } from '@weirhq/client'
import { expressLimit } from '@weirhq/client/express'
import { fastifyLimit } from '@weirhq/client/fastify'
import { cases, quiet, serve, url } from './support.mjs'

const client = new Client({ url, timeoutMs: 30_000 })

const frameworks = {
  async express(t, weir, options, handler = (req, res) => res.end()) {
    const app = express()
    const router = express.Router() // the path is the whole one, also below a mount point
    router.use(expressLimit(weir, options))
    router.use(handler)
    app.use('/login', router)
    app.use(router)
    app.use((error, req, res, next) => res.status(500).end(error.message))
    return serve(t, app)
  },
  async fastify(t, weir, options, handler) {
    const app = Fastify()
    app.addHook('onRequest', fastifyLimit(weir, options))
    app.all('/*', async (req, reply) => (handler ? handler(req.raw, reply.raw) : reply.send()))
    const at = await app.listen({ port: 0, host: '127.0.0.1' })
    t.after(() => app.close())
    return at
  },
}

const byHeader = { request: (req) => ({ user: req.headers['x-test-user'] }) }
const limits = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Degraded', 'RateLimit-Policy', 'RateLimit', 'RateLimit-Warning', 'Retry-After']
const masked = (value) => (typeof value === 'number' ? (value > 999 ? 'N' : value) : typeof value === 'string' ? value.replace(/(;w=\d+)|\d{4,}/g, (_, window) => window ?? 'N') : value)

async function exchange(at, path, headers) {
  const response = await fetch(at + path, { headers })
  const text = await response.text()
  const got = { status: response.status, headers: {} }
  for (const name of limits) if (response.headers.has(name)) got.headers[name] = masked(response.headers.get(name))
  if (text) {
    got.body = Object.fromEntries(Object.entries(JSON.parse(text)).map(([name, value]) => [name, masked(value)]))
    assert.match(response.headers.get('Content-Type'), /^application\/problem\+json(; charset=utf-8)?$/) // Fastify adds the charset
    assert.equal(response.headers.get('Cache-Control'), 'no-store')
  }
  return got
}

for (const [name, start] of Object.entries(frameworks)) {
  test(`${name}: the table`, async (t) => {
    const at = await start(t, client, byHeader)
    for (const { path, user, ...want } of cases(name).http) {
      assert.deepEqual(await exchange(at, path, { 'X-Test-User': user }), want, path)
    }
  })

  test(`${name}: nothing that a client sends is believed`, async (t) => {
    const lies = { 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=203.0.113.9', 'X-Real-IP': '203.0.113.9', 'X-API-Key': 'k', 'X-User': 'mallory' }
    assert.equal((await exchange(await start(t, client, {}), '/', lies)).status, 200)
    const behind = { request: (req) => ({ ip: req.headers['x-real-ip'], user: undefined }) }
    assert.equal((await exchange(await start(t, client, behind), '/', lies)).status, 403)
    const seen = []
    const spy = { check: (request) => (seen.push(request), client.check(request)) }
    await exchange(await start(t, spy, behind), '/a%2Fb?c=d', {})
    assert.deepEqual(seen.map(({ host, ...rest }) => rest), [{ ip: '127.0.0.1', method: 'GET', path: '/a%2Fb' }])
  })

  test(`${name}: options`, async (t) => {
    const options = {
      ...byHeader,
      headers: false,
      skip: (req) => req.url === '/skipped',
      deny: (denial, verdict) => ({ ...denial, status: 420, body: JSON.stringify({ rule: verdict.rule }) }),
    }
    const at = await start(t, client, options)
    const user = { 'X-Test-User': `${name}-options` }
    for (const want of [200, 200, 420]) assert.equal((await exchange(at, '/login', user)).status, want)
    assert.deepEqual(await exchange(at, '/login', user), { status: 420, headers: {}, body: { rule: 'login' } })
    assert.equal((await exchange(at, '/skipped', { 'X-Test-User': 'mallory' })).status, 200)
  })

  test(`${name}: a request that weir calls invalid, and one that the program cannot describe`, async (t) => {
    const got = await exchange(await start(t, client, {}), '/' + 'x'.repeat(9000), {})
    assert.deepEqual(got, { status: 400, headers: {}, body: { type: 'about:blank', title: 'Bad Request', status: 400, detail: 'The request is invalid, so its limits cannot be checked.' } })
    const broken = await start(t, client, { request: () => { throw new Error('no session') } })
    assert.equal((await fetch(broken)).status, 500)
  })

  test(`${name}: weir is unavailable`, async (t) => {
    const nowhere = (onFailure) => new Client({ url: 'http://127.0.0.1:1', onFailure, logger: quiet, local: { limit: 1, periodMs: 3_600_000 } })
    assert.deepEqual(await exchange(await start(t, nowhere('open'), {}), '/', {}), { status: 200, headers: { 'X-RateLimit-Degraded': '1' } })
    const closed = await exchange(await start(t, nowhere('closed'), {}), '/', {})
    assert.deepEqual(closed.headers, { 'X-RateLimit-Degraded': '1', 'Retry-After': '5' })
    assert.deepEqual([closed.status, closed.body.title, closed.body.retry_after], [503, 'Temporary Reduced Capacity', 5])
    const local = await start(t, nowhere('local'), {})
    assert.equal((await exchange(local, '/', {})).status, 200)
    const denied = await exchange(local, '/', {})
    assert.deepEqual([denied.status, denied.headers['RateLimit'], denied.headers['RateLimit-Policy']], [429, '"local";r=0;t=N', '"local";q=1;w=3600'])
  })

  test(`${name}: a shaped request is delayed`, async (t) => {
    const at = await start(t, client, { ...byHeader, maxDelayed: 1 })
    const user = { 'X-Test-User': `${name}-shaped` }
    const before = performance.now()
    for (let i = 0; i < 3; i++) assert.equal((await exchange(at, '/turns', user)).status, 200)
    assert.ok(performance.now() - before >= 90, 'the second and the third wait for 50 ms each')
    const full = await start(t, { check: async (r) => ({ ...(await client.check(r)), delayMs: 3_600_000 }) }, { ...byHeader, maxDelayed: 1 })
    const ender = new AbortController()
    const delayed = [1, 2].map(() => fetch(full + '/turns', { headers: user, signal: ender.signal }).catch(() => undefined))
    const got = await Promise.race(delayed) // one of them has no place to wait
    assert.deepEqual([got.status, (await got.json()).title], [503, 'Temporary Reduced Capacity'])
    ender.abort()
    await Promise.all(delayed) // a timer that is left keeps this process from ending
  })
}

test('what is no path', async (t) => {
  const seen = []
  const limit = expressLimit({ check: (request) => (seen.push(request.path), client.check(request)) })
  const at = new URL(await serve(t, createServer((req, res) => limit(req, res, () => res.end())).listeners('request')[0]))
  for (const path of ['*', 'http://other.example/a?b', 'http://other.example', '//two/slashes']) {
    await new Promise((done) => httpRequest({ host: at.hostname, port: at.port, method: 'OPTIONS', path }, (res) => res.resume().on('end', done)).end())
  }
  assert.deepEqual(seen, ['', '/a', '/', '//two/slashes'])
})

test('the examples', async (t) => {
  for (const name of ['express', 'fastify']) {
    const { app } = await import(`../examples/${name}.mjs`)
    const at = name === 'express' ? await serve(t, app) : await app.listen({ port: 0, host: '127.0.0.1' })
    if (name === 'fastify') t.after(() => app.close())
    assert.equal(await (await fetch(at + '/api/items')).text(), '[]')
  }
  await import('../examples/hold.mjs')
  const { default: edge } = await import('../examples/edge.mjs')
  const response = await edge.fetch(new Request('https://shop.example.com/', { headers: { 'CF-Connecting-IP': '192.0.2.1' } }))
  assert.deepEqual([response.status, response.headers.get('X-RateLimit-Degraded')], [200, '1']) // weir.example.com is no weir
})
