import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Client, lostAfter, Problem, slowAfter, Unreachable } from '../src/api/client'
import { events } from '../src/api/stream'

// A server that speaks as the API does: tokens, versions, problems.
let server: Server
let base: string
let version: number
let calls: string[]
let sessions: boolean // whether it has any

function answer(r: IncomingMessage, w: ServerResponse) {
  calls.push(`${r.method} ${r.url} ${r.headers['if-match'] ?? '-'}`)
  const deny = (status: number, kind: string, more: object = {}, headers: Record<string, string> = {}) => {
    w.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers })
    w.end(JSON.stringify({ type: 'urn:weir:problem:' + kind, title: kind, status, detail: 'It is ' + kind + '.', ...more }))
  }
  if (r.url === '/broken') return void w.writeHead(502).end('<h1>Bad Gateway</h1>')
  if (r.url === '/v1/session') {
    if (!sessions) return deny(404, 'not-found')
    let body = ''
    r.on('data', (part) => (body += part)).on('end', () => {
      const { token } = r.method === 'POST' ? JSON.parse(body) : { token: '' }
      if (token === 'wrong') return deny(401, 'invalid-token')
      w.writeHead(204, { 'Set-Cookie': token }).end()
    })
    return
  }
  const token = r.headers.authorization ?? (r.headers.cookie && r.headers['x-weir-session'] === '1' ? 'Bearer ' + r.headers.cookie : undefined)
  if (!token) return deny(401, 'token-required')
  if (token === 'Bearer wrong') return deny(401, 'invalid-token')
  if (r.method === 'GET' && r.url === '/v1/stream') {
    w.writeHead(200, { 'Content-Type': 'text/event-stream' })
    w.write(': hello\n\nid: 1\ndata: {"a":1}\n\ndata: two\r\ndata: lines\r\n\r\nda')
    return void setImmediate(() => w.end('ta:{"é":2}\n\ndata: unfinished'))
  }
  if (r.method === 'GET') return void w.writeHead(200, { ETag: `"${version}"`, 'Content-Type': 'application/json' }).end('{"rules":[]}')
  if (token === 'Bearer reader') return deny(403, 'forbidden')
  if (r.headers['if-match'] !== `"${version}"`) return deny(412, 'version-conflict', { version }, { ETag: `"${version}"` })
  version++
  w.writeHead(200, { ETag: `"${version}"` }).end(r.url === '/v1/block' ? '{"warnings":[{"code":"W006"}]}' : '{}')
}

beforeEach(async () => {
  version = 3
  calls = []
  sessions = false
  server = createServer(answer)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => new Promise<void>((closed) => void server.close(() => closed())))

const caught = async (promise: Promise<unknown>) => promise.then(() => expect.fail('it succeeded'), (error: unknown) => error)

describe('tokens', () => {
  it('are asked for once, however many calls wait for one', async () => {
    const client = new Client(base)
    let asked = 0
    client.askToken = async () => (asked++, 'admin')
    const all = await Promise.all([1, 2, 3, 4].map(() => client.json('GET', '/v1/rules')))
    expect(all.map((a) => a.version)).toEqual([3, 3, 3, 3])
    expect(asked).toBe(1)
    expect(client.hasToken).toBe(true)
  })
  it('are asked for again if they are wrong', async () => {
    const client = new Client(base)
    const wrong: boolean[] = []
    client.askToken = async (again) => (wrong.push(again), wrong.length === 1 ? 'wrong' : 'admin')
    await client.json('GET', '/v1/rules')
    expect(wrong).toEqual([false, true])
  })
  it('may be denied by who has none', async () => {
    const problem = await caught(new Client(base).json('GET', '/v1/rules'))
    expect(problem).toBeInstanceOf(Problem)
    expect((problem as Problem).status).toBe(401)
  })
  it('are forgotten', async () => {
    const client = new Client(base)
    client.askToken = async () => (client.hasToken ? null : 'admin')
    await client.json('GET', '/v1/rules')
    await client.signOut()
    client.askToken = async () => null
    expect((await caught(client.json('GET', '/v1/rules')) as Problem).is('token-required')).toBe(true)
  })
  it('that only read are noticed', async () => {
    const client = new Client(base)
    client.askToken = async () => 'reader'
    let told = 0
    client.onReadOnly = () => told++
    await client.json('GET', '/v1/rules')
    expect(told).toBe(0)
    expect((await caught(client.json('PUT', '/v1/rules', { ifMatch: 3, body: '' })) as Problem).is('forbidden')).toBe(true)
    expect(told).toBe(1)
  })
})

describe('warnings', () => {
  it('of a change are told', async () => {
    const client = new Client(base)
    client.askToken = async () => 'admin'
    const told: string[] = []
    client.onWarnings = (all) => told.push(...all.map((p) => p.code))
    await client.json('PUT', '/v1/rules', { ifMatch: 3 })
    expect(told).toEqual([])
    await client.json('PUT', '/v1/block', { ifMatch: 4 })
    expect(told).toEqual(['W006'])
  })
})

describe('sessions', () => {
  // A browser that keeps the cookie.
  const browser = (): typeof fetch => {
    let cookie = ''
    return async (input, init) => {
      const response = await fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), ...(cookie ? { Cookie: cookie } : {}) } })
      cookie = response.headers.get('Set-Cookie') ?? cookie
      return response
    }
  }
  beforeEach(() => void (sessions = true))

  it('take the place of the token', async () => {
    const client = new Client(base, browser())
    let asked = 0
    client.askToken = async () => (asked++, 'admin')
    await Promise.all([1, 2, 3].map(() => client.json('GET', '/v1/rules')))
    expect([asked, client.hasToken]).toEqual([1, false])
  })
  it('do not begin with a wrong token', async () => {
    const client = new Client(base, browser())
    const wrong: boolean[] = []
    client.askToken = async (again) => (wrong.push(again), wrong.length < 3 ? 'wrong' : 'admin')
    await client.json('GET', '/v1/rules')
    expect(wrong).toEqual([false, true, true])
  })
  it('are none in a browser that keeps no cookies', async () => {
    const client = new Client(base)
    client.askToken = async () => 'admin'
    await client.json('GET', '/v1/rules')
    expect(client.hasToken).toBe(true)
  })
  it('may have begun in another tab', async () => {
    const shared = browser()
    const client = new Client(base, shared)
    client.askToken = async () => {
      await shared(base + '/v1/session', { method: 'POST', body: '{"token": "admin"}' })
      return ''
    }
    await client.json('GET', '/v1/rules')
    expect(client.hasToken).toBe(false)
  })
})

describe('versions', () => {
  it('are named by who writes, and told by who was faster', async () => {
    const client = new Client(base)
    client.askToken = async () => 'admin'
    expect((await client.json('PUT', '/v1/rules', { ifMatch: 3, body: 'rules: []' })).version).toBe(4)
    const problem = (await caught(client.json('PUT', '/v1/rules', { ifMatch: 3, body: 'rules: []' }))) as Problem
    expect([problem.status, problem.version, problem.is('version-conflict')]).toEqual([412, 4, true])
    expect(calls.at(-1)).toBe('PUT /v1/rules "3"')
  })
})

describe('calls', () => {
  it('escape what stands in a query and leave out what is empty', async () => {
    const client = new Client(base)
    client.askToken = async () => 'admin'
    await client.json('GET', '/v1/keys', { query: { key: 'user:a&b=c|é', rule: '', tier: undefined } })
    expect(calls.at(-1)).toBe('GET /v1/keys?key=user%3Aa%26b%3Dc%7C%C3%A9 -')
  })
  it('say a list once for each', async () => {
    const client = new Client(base)
    client.askToken = async () => 'admin'
    await client.json('GET', '/v1/counters', { query: { name: ['a,b', '', 'c&d'], n: 0 } })
    expect(calls.at(-1)).toBe('GET /v1/counters?name=a%2Cb&name=c%26d&n=0 -')
  })
  it('survive answers that are not of the API', async () => {
    const problem = (await caught(new Client(base).json('GET', '/broken'))) as Problem
    expect([problem.status, problem.detail]).toEqual([502, '<h1>Bad Gateway</h1>'])
  })
  it('say that nobody is there', async () => {
    expect(await caught(new Client('http://127.0.0.1:1').json('GET', '/v1/rules'))).toBeInstanceOf(Unreachable)
  })
})

it('streams are read event by event', async () => {
  const client = new Client(base)
  client.askToken = async () => 'reader'
  const got: string[] = []
  for await (const data of events((await client.send('GET', '/v1/stream')).body!)) got.push(data)
  expect(got).toEqual(['{"a":1}', 'two\nlines', '{"é":2}'])
})

describe('a server that does not answer', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const silent = (_: RequestInfo | URL, init?: RequestInit) =>
    new Promise<Response>((_, reject) => init!.signal!.addEventListener('abort', () => reject(new Error('aborted'))))

  it('is said to be slow, and then given up', async () => {
    const client = new Client('', silent)
    let slow = 0
    const paths = new Set<string>()
    client.onSlow = (more, path) => (paths.add(path), (slow += more))
    const failed = expect(client.send('GET', '/v1/rules')).rejects.toThrow(Unreachable)
    await vi.advanceTimersByTimeAsync(slowAfter - 1)
    expect(slow).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(slow).toBe(1)
    await vi.advanceTimersByTimeAsync(lostAfter - slowAfter)
    await failed
    expect([slow, ...paths]).toEqual([0, '/v1/rules'])
  })
})
