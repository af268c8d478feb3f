import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Problem, Unreachable, type Client } from '../src/api/client'
import type { Formatted } from '../src/api/limits'
import type { Rule } from '../src/api/types'
import { again, Draft, pause } from '../src/draft.svelte'

// A server that answers when it is told to.
interface Asked {
  body: { source: string; rule?: Rule }
  answer: (with_: Partial<Formatted>) => void
  fail: (why: unknown) => void
}
let asked: Asked[]
let draft: Draft

beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  const json = (_method: string, _path: string, { body, signal }: { body: Asked['body']; signal: AbortSignal }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')))
      asked.push({ body, answer: (a) => resolve({ value: { source: body.source, rule: null, problems: [], ...a }, version: 0 }), fail: reject })
    })
  draft = new Draft({ json } as unknown as Client)
})
afterEach(() => vi.useRealTimers())

const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms)
const rule: Rule = { id: 'a', key: 'ip', limit: '1/1s' }

async function begun(): Promise<void> {
  const done = draft.begin('id: a # mine\n')
  await tick()
  asked[0]!.answer({ rule })
  await done
}

describe('a draft', () => {
  it('is read at once when it begins', async () => {
    await begun()
    expect([draft.rule, draft.work, draft.usable]).toEqual([rule, '', true])
  })
  it('is read a moment after the last key, and the text stays as it was typed', async () => {
    await begun()
    draft.type('id: b')
    await tick(pause - 1)
    draft.type('{id: bc}')
    await tick(pause - 1)
    expect([asked.length, draft.work]).toEqual([1, 'reading'])
    await tick(1)
    expect(asked[1]!.body).toEqual({ source: '{id: bc}' })
    asked[1]!.answer({ source: 'id: bc\n', rule: { ...rule, id: 'bc' } })
    await tick()
    expect([draft.source, draft.rule?.id, draft.work]).toEqual(['{id: bc}', 'bc', ''])
  })
  it('is written from the form, which does not wait for it', async () => {
    await begun()
    draft.put({ ...rule, limit: '2/1s' })
    await tick()
    draft.put({ ...draft.rule!, key: 'user' })
    expect(draft.rule).toEqual({ ...rule, limit: '2/1s', key: 'user' })
    await tick()
    // Both changes, on the text that was there before either.
    expect(asked[2]!.body).toEqual({ source: 'id: a # mine\n', rule: { ...rule, limit: '2/1s', key: 'user' } })
    asked[1]!.answer({ source: 'too late', rule: null })
    asked[2]!.answer({ source: 'both # mine\n', rule: draft.rule })
    await draft.settle()
    expect(draft.source).toBe('both # mine\n')
  })
  it('is settled before it is saved, however slow the server is', async () => {
    await begun()
    draft.type('id: c')
    let settled = false
    void draft.settle().then(() => (settled = true))
    await tick() // not after the pause
    expect([asked.length, settled]).toEqual([2, false])
    asked[1]!.answer({ rule: null, problems: [{ severity: 'error', code: 'E001', message: 'no' }] })
    await tick()
    expect([settled, draft.usable]).toEqual([true, false])
  })
  it('is asked for again while the server does not answer', async () => {
    await begun()
    draft.put({ ...rule, limit: '3/1s' })
    await tick()
    asked[1]!.fail(new Unreachable('gone'))
    await tick()
    expect([draft.failed instanceof Unreachable, draft.work, draft.rule?.limit]).toEqual([true, 'writing', '3/1s'])
    await tick(again)
    asked[2]!.answer({ source: 'limit: 3/1s\n', rule: draft.rule })
    await draft.settle()
    expect([draft.failed, draft.source]).toEqual([null, 'limit: 3/1s\n'])
  })
  it('is not sent again if the server does not take it', async () => {
    await begun()
    draft.type('x'.repeat(9))
    await tick(pause)
    asked[1]!.fail(new Problem(413, '', 'too long'))
    await tick(10 * again)
    expect([asked.length, draft.work, draft.usable]).toEqual([2, '', false])
  })
})
