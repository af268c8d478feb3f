import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Client } from '../src/api/client'
import { maxBytes, maxLines, parts, send } from '../src/imported'

const line = (client: string, parent?: string, note?: string) => JSON.stringify({ client, parent, note }) + '\n'
const many = (n: number, of: (i: number) => string) => Array.from({ length: n }, (_, i) => of(i)).join('')

describe('parts', () => {
  it('sends what one call takes as it is', () => {
    for (const text of ['clients:\n  - {client: "user:a"}\n', '{"clients": [{"client": "user:a"}]}', '{\n' + line('user:a'), many(maxLines, (i) => line('user:' + i)), '', '{clients: []}' + ' '.repeat(2 * maxBytes)]) {
      expect(parts(text, true)).toEqual({ all: [{ body: text, assumed: 0, numbers: [] }], errors: [] })
    }
  })
  it('splits many lines, those above first, and none gets lost', () => {
    const n = 1500
    const text = many(n, (i) => line('api_key:' + i, 'user:' + i)) + '{\n' + many(n, (i) => line('user:' + i, 'org:acme')) + '\n' + line('org:acme')
    const all = text.split('\n')
    for (const dry of [false, true]) {
      const numbers: number[] = []
      const known = new Set<string>()
      for (const part of parts(text, dry).all) {
        const lines = part.body.trimEnd().split('\n')
        expect(lines.length).toBe(part.assumed + part.numbers.length)
        expect(lines.length).toBeLessThanOrEqual(maxLines)
        if (dry) known.clear() // of the parts before
        else expect(part.assumed).toBe(0)
        lines.forEach((text, i) => {
          if (i >= part.assumed) expect(text).toBe(all[part.numbers[i - part.assumed]! - 1])
          if (text !== '{') known.add(JSON.parse(text).client)
        })
        for (const text of lines) {
          const parent = text === '{' ? undefined : JSON.parse(text).parent
          if (parent) expect(known.has(parent)).toBe(true)
        }
        numbers.push(...part.numbers)
      }
      expect(numbers.sort((a, b) => a - b)).toEqual(all.flatMap((text, i) => (text ? [i + 1] : [])))
    }
  })
  it('keeps to the bytes of a call, and ends with a cycle', () => {
    const text = many(2000, (i) => line('user:' + i, 'user:' + ((i + 1) % 2000), 'ü'.repeat(800)))
    const { all } = parts(text, true)
    expect(all.flatMap((p) => p.numbers)).toHaveLength(2000)
    for (const part of all) expect(new TextEncoder().encode(part.body).length).toBeLessThanOrEqual(maxBytes)
  })
  it('sorts lines although some have no client', () => {
    const without = '{"tier":"pro"}\n{"client":"","tier":"pro"}\n{"client":7}\nnull\n{"parent":["user:1"]}\n'
    const text = many(1500, (i) => line('user:' + i, 'org:' + (i % 50))) + without + many(50, (i) => line('org:' + i))
    for (const dry of [true, false]) {
      const { all, errors } = parts(text, dry)
      expect(errors).toEqual([])
      expect(all.flatMap((p) => p.numbers)).toHaveLength(1555)
      expect(all[0]!.numbers.slice(0, 56)).toEqual([...Array.from({ length: 55 }, (_, i) => 1501 + i), 1])
      for (const part of all) expect(part.assumed).toBe(dry && part !== all[0] ? 50 : 0)
    }
  })
  it('tells of a client that is there twice, in whichever parts, and sends the first', () => {
    const text = many(1500, (i) => line('user:' + i, 'org:acme')) + line('org:acme') + '\n' + line('user:7', undefined, 'again') + line('org:acme', 'user:3')
    for (const dry of [true, false]) {
      const { all, errors } = parts(text, dry)
      expect(errors).toEqual([
        { line: 1503, field: 'client', message: 'client: "user:7" is in line 8, too; remove one of the two' },
        { line: 1504, field: 'client', message: 'client: "org:acme" is in line 1501, too; remove one of the two' },
      ])
      expect(all.flatMap((p) => p.numbers)).toHaveLength(1501)
      expect(all.map((p) => p.body).join('')).not.toContain('again')
      expect(all[0]!.numbers[0]).toBe(1501)
    }
  })
})

describe('send', () => {
  it('adds up, waits while the server is busy, and tells lines of the file', async () => {
    const asked: string[] = []
    const server = createServer((r, w) => {
      asked.push(r.url ?? '')
      r.resume().on('end', () => {
        if (asked.length === 1) return void w.writeHead(503).end(JSON.stringify({ type: 'urn:weir:problem:busy' }))
        w.end(JSON.stringify({ added: 2, changed: 0, unchanged: 1, deleted: 0, errors: [{ line: 3, message: 'no' }], warnings: [{ line: 4, message: 'idle' }], changes: [{ line: 0, before: { client: 'user:a' } }] }))
      })
    }).listen(0)
    const api = new Client(`http://localhost:${(server.address() as AddressInfo).port}`)
    const done: number[] = []
    const answer = await send(api, { all: [{ body: 'a', assumed: 0, numbers: [] }, { body: 'b', assumed: 2, numbers: [70, 80] }], errors: [{ line: 90, message: 'twice' }] }, { dry_run: 'true' }, (n) => done.push(n))
    server.close()
    expect(done).toEqual([0, 1])
    expect(asked).toEqual(['/v1/clients/import?dry_run=true', '/v1/clients/import?dry_run=true', '/v1/clients/import?dry_run=true&assumed=2'])
    expect(answer).toEqual({ added: 4, changed: 0, unchanged: 2, deleted: 0, errors: [{ line: 90, message: 'twice' }, { line: 3, message: 'no' }, { line: 70, message: 'no' }], warnings: [{ line: 4, message: 'idle' }, { line: 80, message: 'idle' }], changes: [{ line: 0, before: { client: 'user:a' } }, { line: 0, before: { client: 'user:a' } }] })
  })
  it('tells what was done before a call failed', async () => {
    let calls = 0
    const server = createServer((r, w) => {
      r.resume().on('end', () => (++calls === 3 ? w.writeHead(500).end('{"detail":"no room"}') : w.end('{"added":2,"changed":1,"unchanged":0,"deleted":0,"errors":[]}')))
    }).listen(0)
    const api = new Client(`http://localhost:${(server.address() as AddressInfo).port}`)
    const all = ['a', 'b', 'c', 'd'].map((body) => ({ body, assumed: 0, numbers: [] }))
    let done = -1
    const answer = await send(api, { all, errors: [] }, {}, (n) => (done = n))
    server.close()
    expect([calls, done, answer.added, answer.changed, String(answer.error)]).toEqual([3, 2, 4, 2, 'Problem: no room'])
  })
})
