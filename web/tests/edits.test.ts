import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Client, Problem } from '../src/api/client'
import { setListed, setOverride } from '../src/edits'
import { placeOf } from '../src/route.svelte'
import { sample } from '../src/sample'

// A server with one document, and rivals who change it just before somebody writes.
let server: Server
let api: Client
let document: string
let version: number
let rivals: number
let lists: string[]

beforeEach(async () => {
  document = 'rules: [] # mine\n'
  version = 1
  rivals = 0
  lists = []
  server = createServer((r, w) => {
    if (/^\/v1\/(block|exempt)/.test(r.url ?? '')) {
      lists.push(`${r.method} ${r.url}`)
      return void w.writeHead(200, { ETag: '"7"' }).end('{}')
    }
    const tag = { ETag: `"${version}"` }
    if (r.method === 'GET') return void w.writeHead(200, tag).end(document)
    let body = ''
    r.on('data', (chunk) => (body += chunk)).on('end', () => {
      if (rivals > 0) {
        rivals--
        version++
      }
      if (r.headers['if-match'] !== `"${version}"`) {
        return void w.writeHead(412).end(JSON.stringify({ type: 'urn:weir:problem:version-conflict', status: 412, detail: 'late', version }))
      }
      document = body
      version++
      w.writeHead(200, { ETag: `"${version}"` }).end('{}')
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  api = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
afterEach(() => new Promise<void>((closed) => void server.close(() => closed())))

describe('edits', () => {
  it('put clients on lists, whatever they are called', async () => {
    expect(await setListed(api, 'block', 'user', 'a&b=c]', true)).toBe(7)
    await setListed(api, 'exempt', 'ip', '10.0.0.0/8', false)
    expect(lists).toEqual(['PUT /v1/block?user=a%26b%3Dc%5D', 'DELETE /v1/exempt?ip=10.0.0.0%2F8'])
  })
  it('give up in the end', async () => {
    document = '{"id":"api","key":"user","limit":"1/1s"}'
    rivals = 100
    await expect(setOverride(api, 'api', 'user:eve', '5/1s')).rejects.toBeInstanceOf(Problem)
    expect(document).not.toContain('eve')
  })
  it('give a client a limit of its own and take it away', async () => {
    document = '{"id":"api","key":"user","limit":"1/1s","overrides":{"user:bob":"9/1s"}}'
    rivals = 1
    await setOverride(api, 'api', 'user:__proto__', { limit: '5/1s', burst: 7 })
    const rule = JSON.parse(document)
    expect(Object.entries(rule.overrides)).toEqual([['user:bob', '9/1s'], ['user:__proto__', { limit: '5/1s', burst: 7 }]])
    await setOverride(api, 'api', 'user:__proto__', null)
    await setOverride(api, 'api', 'user:bob', null)
    expect(JSON.parse(document)).toEqual({ id: 'api', key: 'user', limit: '1/1s' })
  })
})

describe('places', () => {
  it.each([
    ['', 'overview', []], ['#/', 'overview', []], ['#/rules', 'rules', []], ['#/rules/edit/a%2Fb', 'rules', ['edit', 'a/b']],
    ['#/rules/edit/%E0%A4%A', 'rules', ['edit', '%E0%A4%A']],
  ])('%s', (hash, page, rest) => {
    const place = placeOf(hash)
    expect([place.page, place.rest]).toEqual([page, rest])
  })
  it('carry a query', () => expect(placeOf('#/clients?key=user%3Aa%26b').query.get('key')).toBe('user:a&b'))
})

describe('sample requests', () => {
  it('have what was filled in, and charge nobody', () => {
    expect(sample({ path: ' /a ', ip: '' }, 'header X-Tenant: acme\nattr action = post\nattr region: eu\nnonsense\nfoo bar: baz')).toEqual({
      peek: true, path: '/a', headers: { 'X-Tenant': 'acme' }, attributes: { action: 'post', region: 'eu' },
    })
  })
})
