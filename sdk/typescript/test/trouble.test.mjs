// What the client does while weir is unavailable, slow, or somebody else.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, WeirError } from '@weirhq/client'
import { quiet, serve, startWeir, until, url } from './support.mjs'

const alice = { user: 'alice', path: '/' }

// gone is an address where nobody listens any more.
async function gone() {
  const ended = []
  const address = await serve({ after: (end) => ended.push(end) }, () => {})
  ended.forEach((end) => end())
  return address
}

test('weir ends and comes back', async (t) => {
  const rules = new URL('../../../test/sdk/rules.yaml', import.meta.url).pathname
  const weir = await startWeir(t, rules)
  const said = []
  const logger = { warn: (text) => said.push(text), info: (text) => said.push(text) }
  const client = new Client({ url: weir.url, timeoutMs: 30_000, onFailure: 'closed', logger })
  const login = { user: 'alice', path: '/login' }
  assert.equal((await client.check(login)).allowed, true)
  const { hold } = await client.reserve({ user: 'alice', path: '/chat', cost: { tokens: 7 } })
  await weir.kill()
  for (let i = 0; i < 5; i++) {
    const v = await client.check(login)
    assert.deepEqual([v.allowed, v.degraded, v.reason, v.status, v.retryAfterMs], [false, true, 'unavailable', 503, 5000])
    assert.match(v.error.message, /^weir: the service is unavailable: ./)
  }
  await assert.rejects(hold.settle(5), (error) => error instanceof WeirError && error.code === 'unavailable')
  assert.equal((await client.reserve(login)).hold.id, '')
  await startWeir(t, rules, weir.host)
  await until(async () => !(await client.check(login)).degraded)
  assert.equal((await client.peek(login)).rule, 'login')
  await assert.rejects(hold.settle(5), { code: 'hold-unknown' }) // it was in memory
  assert.deepEqual(said, ['weir is unavailable; requests are answered without it', 'weir is available again'])
})

test('counters that fail are errors, and checks are made as before', async (t) => {
  const answers = {
    503: { type: 'urn:weir:problem:store-unavailable', title: 'x', status: 503, detail: 'The store is unavailable.' },
    401: { type: 'urn:weir:problem:token-required', title: 'x', status: 401, detail: 'A token is required.' },
    403: { type: 'urn:weir:problem:forbidden', title: 'x', status: 403, detail: 'The scope is another.' },
    507: { type: 'urn:weir:problem:counters-full', title: 'x', status: 507, detail: 'The counters are full.' },
    200: { counters: [{ name: 'a', value: '1' }] },
  }
  let asked
  const address = await serve(t, (req, res) => {
    asked = [req.method, req.headers.authorization]
    const status = req.url.startsWith('/v1/counters') ? Number(new URL(req.url, 'http://x').searchParams.get('name')) : 0
    if (status) return res.writeHead(status).end(JSON.stringify(answers[status]))
    req.resume().on('end', () => res.end(JSON.stringify({ allowed: true, reason: 'limits', limit: 1, remaining: 1, reset_at: 1, reset_after_ms: 1, retry_after_ms: 0, delay_ms: 0, degraded: false, version: 1, results: [] })))
  })
  const client = new Client({ url: address, logger: quiet, timeoutMs: 30_000, token: 'secret' })
  for (const [name, code] of Object.entries({ 503: 'unavailable', 401: 'unauthorized', 403: 'unauthorized', 507: 'counters-full', 200: 'unavailable' })) {
    for (let i = 0; i < 5; i++) await assert.rejects(client.counters.get(name), (error) => error instanceof WeirError && error.code === code)
  }
  assert.deepEqual(asked, ['GET', 'Bearer secret'])
  assert.equal((await client.check(alice)).degraded, false)
  await assert.rejects(new Client({ url: await gone(), logger: quiet }).counters.add({ name: 'a' }), { code: 'unavailable' })
  await assert.rejects(client.counters.get('503', { signal: AbortSignal.abort(new Error('enough')) }), /enough/)
})

test('a wrong token is an error, and no reason to fail open', async (t) => {
  const address = await serve(t, (req, res) => {
    const [status, type] = req.headers.authorization ? [403, 'forbidden'] : [401, 'token-required']
    req.resume().on('end', () => res.writeHead(status).end(JSON.stringify({ type: `urn:weir:problem:${type}`, title: 'x', status, detail: 'No.' })))
  })
  for (const options of [{}, { token: 'secret' }]) {
    const client = new Client({ url: address, logger: quiet, timeoutMs: 30_000, ...options })
    for (let i = 0; i < 5; i++) await assert.rejects(client.check(alice), { code: 'unauthorized' })
    await assert.rejects(client.charge(alice), { code: 'unauthorized' })
  }
})

test('fail open', async () => {
  const client = new Client({ url: await gone(), logger: quiet })
  const v = await client.check(alice)
  assert.deepEqual([v.allowed, v.degraded, v.reason, v.rule, v.results], [true, true, 'unavailable', '', []])
})

test('local fallback', async () => {
  const client = new Client({ url: await gone(), logger: quiet, onFailure: 'local', local: { limit: 2, periodMs: 3_600_000, maxKeys: 2 } })
  const ask = async (request) => {
    const v = await client.check(request)
    assert.equal(v.degraded, true)
    assert.ok(v.error)
    return [v.allowed, v.remaining]
  }
  assert.equal((await client.peek(alice)).remaining, 2)
  assert.deepEqual(await ask(alice), [true, 1])
  assert.deepEqual(await ask({ ip: '192.0.2.1' }), [true, 1])
  assert.deepEqual(await ask(alice), [true, 0])
  const v = await client.check(alice)
  assert.deepEqual([v.allowed, v.reason, v.rule, v.status, v.message], [false, 'limits', 'local', 429, 'The limit local is used up; try again in 3600 s.'])
  assert.equal(Math.ceil(v.retryAfterMs / 60_000), 60)
  assert.deepEqual([v.results[0].key, v.results[0].policy], ['user:alice', '2/1h'])
  // There is room for two clients; all others share what is left of one.
  assert.deepEqual(await ask({ apiKey: 'a' }), [true, 1])
  assert.deepEqual(await ask({ apiKey: 'b' }), [true, 0])
  assert.deepEqual(await ask({ apiKey: 'c' }), [false, 0])
  assert.deepEqual(await ask({ ip: '192.0.2.1' }), [true, 0])
})

test('the local fallback keeps no long keys', async () => {
  const client = new Client({ url: await gone(), logger: quiet, onFailure: 'local', local: { limit: 2, periodMs: 3_600_000 } })
  for (const letter of ['a', 'b', 'c']) {
    assert.equal((await client.check({ apiKey: letter.repeat(2000) })).results[0].key, '')
  }
})

test('the window of the local fallback ends', async () => {
  const client = new Client({ url: await gone(), logger: quiet, onFailure: 'local', local: { limit: 1, periodMs: 50 } })
  assert.equal((await client.check(alice)).allowed, true)
  await until(async () => (await client.check(alice)).allowed)
})

test('the breaker keeps calls away, and one tries again', async (t) => {
  let calls = 0
  let well = false
  const at = await serve(t, (request, response) => {
    calls++
    response.statusCode = well ? 400 : 503
    response.end(well ? JSON.stringify({ type: 'urn:weir:problem:bad-field', title: 'Invalid value', status: 400, detail: 'cost: too large' }) : 'busy')
  })
  const client = new Client({ url: at, timeoutMs: 30_000, logger: quiet })
  for (let i = 0; i < 3; i++) assert.match((await client.check(alice)).error.message, /status 503/)
  assert.equal(calls, 3)
  const many = await Promise.all(Array.from({ length: 50 }, () => client.check(alice)))
  assert.ok(many.every((v) => v.degraded))
  assert.ok(calls <= 4, `${calls} calls`)
  well = true
  await until(() => client.check(alice).then(() => false, (error) => error.code === 'invalid')) // a mistake of the request is an answer
})

test('hostile answers', async (t) => {
  const good = { allowed: true, reason: 'limits', limit: 1, remaining: 1, reset_at: 1, reset_after_ms: 1, retry_after_ms: 0, delay_ms: 0, degraded: false, version: 1, results: [] }
  const json = (value) => (request, response) => response.end(JSON.stringify(value))
  let stolen = 0
  const thief = await serve(t, (request, response) => {
    stolen++
    json(good)(request, response)
  })
  for (const [name, answer] of Object.entries({
    'not JSON': (request, response) => response.end('<html>'),
    nothing: (request, response) => response.end(),
    'not an object': json([good]),
    'a field is missing': json({ ...good, allowed: undefined }),
    'a text that is no boolean': json({ ...good, allowed: 'yes' }),
    'a number that is too large': json({ ...good, remaining: 1e300 }),
    'results of something else': json({ ...good, results: [null] }),
    'not UTF-8': (request, response) => response.end(Buffer.from([0x22, 0xff, 0x22])),
    'too deep': (request, response) => response.end('['.repeat(500_000)),
    'too long': (request, response) => response.end(JSON.stringify({ ...good, rule: 'x'.repeat(1 << 20) })),
    endless: (request, response) => {
      const write = () => response.write('x'.repeat(65536)) ? setImmediate(write) : response.once('drain', write)
      response.on('error', () => {})
      write()
    },
    'a redirect': (request, response) => response.writeHead(307, { Location: thief }).end(),
    'somebody else': (request, response) => response.writeHead(404).end('{"detail": "no such page"}'),
    'a problem of the host name': (request, response) =>
      response.writeHead(403).end(JSON.stringify({ type: 'urn:weir:problem:foreign-host', title: 'x', status: 403, detail: 'Unknown host.' })),
    'it hangs up': (request, response) => request.socket.destroy(),
  })) {
    const client = new Client({ url: await serve(t, answer), timeoutMs: 30_000, onFailure: 'closed', token: 'secret', logger: quiet })
    const v = await client.check(alice)
    assert.deepEqual([v.allowed, v.degraded, v.status], [false, true, 503], name)
    assert.ok(!v.error.message.includes('secret'))
  }
  assert.equal(stolen, 0)
  const client = new Client({ url: thief, timeoutMs: 30_000, logger: quiet })
  assert.equal((await client.check(alice)).degraded, false)
  assert.equal(stolen, 1)
})

test('timeouts', async (t) => {
  const silent = await serve(t, () => {})
  const dribbling = await serve(t, (request, response) => {
    const timer = setInterval(() => response.write(' '), 5)
    response.on('close', () => clearInterval(timer))
  })
  for (const at of [silent, dribbling]) {
    const v = await new Client({ url: at, logger: quiet }).check(alice)
    assert.match(v.error.message, /no answer within 100 ms/)
    const short = await new Client({ url: at, timeoutMs: 600_000, logger: quiet }).check(alice, { timeoutMs: 20 })
    assert.match(short.error.message, /no answer within 20 ms/)
  }
})

test('the caller ends a call', async (t) => {
  let arrived
  const came = new Promise((done) => (arrived = done))
  const client = new Client({ url: await serve(t, () => arrived()), timeoutMs: 600_000, logger: quiet })
  const ender = new AbortController()
  const call = client.check(alice, { signal: ender.signal })
  await came
  ender.abort(new Error('enough'))
  await assert.rejects(call, { message: 'enough' })
  await assert.rejects(client.check(alice, { signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
})

test('calls in flight are bounded', async (t) => {
  const waiting = []
  const client = new Client({ url: await serve(t, (request, response) => waiting.push(response)), timeoutMs: 600_000, maxInFlight: 2, logger: quiet })
  const ender = new AbortController()
  const calls = [1, 2].map(() => client.check(alice, { signal: ender.signal }).catch(() => 'ended'))
  await until(() => waiting.length === 2)
  assert.match((await client.check(alice)).error.message, /too many calls are in flight/)
  ender.abort()
  assert.deepEqual(await Promise.all(calls), ['ended', 'ended'])
})

test('connections are used again, and the token is sent', async (t) => {
  const ports = new Set()
  const tokens = new Set()
  const at = await serve(t, (request, response) => {
    ports.add(request.socket.remotePort)
    tokens.add(request.headers.authorization)
    response.writeHead(409).end(JSON.stringify({ type: 'urn:weir:problem:hold-expired', title: 'x', status: 409, detail: 'The hold has expired.' }))
  })
  const client = new Client({ url: at + '/', token: 'secret', timeoutMs: 30_000 })
  for (let i = 0; i < 10; i++) await assert.rejects(client.hold('00').settle(1), { code: 'hold-expired', message: 'weir: The hold has expired.' })
  assert.ok(ports.size < 5, `${ports.size} connections for 10 calls`)
  assert.deepEqual([...tokens], ['Bearer secret'])
})

test('options', () => {
  for (const [options, message] of [
    [{}, /url is required/],
    [{ url: 'weir:8080' }, /url is required/],
    [{ url: 'http://me:secret@weir' }, /without a user/],
    [{ url, timeoutMs: 0 }, /timeoutMs is 0; write a positive whole number/],
    [{ url, maxInFlight: -1 }, /maxInFlight/],
    [{ url, onFailure: 'maybe' }, /write open, closed or local/],
    [{ url, onFailure: 'local' }, /local is required/],
    [{ url, onFailure: 'local', local: { limit: 0, periodMs: 1 } }, /local.limit/],
    [{ url, token: 'a b' }, /not valid in a header/],
    [{ url: 'http://weir.example.com', token: 'secret' }, /clear text/],
  ]) {
    assert.throws(() => new Client(options), (error) => error instanceof TypeError && message.test(error.message) && !error.message.includes('secret@'), message)
  }
  new Client({ url: 'https://weir.example.com/prefix', token: 'secret' })
  new Client({ url: 'http://[::1]:8080', token: 'secret', timeoutMs: undefined })
  new Client({ url: 'http://weir.example.com', token: 'secret', plainToken: true })
})
