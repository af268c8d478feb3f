import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { every } from '../src/every'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

describe('every', () => {
  it('works at once and again, and not once it is stopped', async () => {
    let runs = 0
    const stop = every(1000, async () => void runs++)
    expect(runs).toBe(1)
    await vi.advanceTimersByTimeAsync(3500)
    expect(runs).toBe(4)
    stop()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(runs).toBe(4)
  })
  it('begins nothing before the last is done', async () => {
    let running = 0
    let most = 0
    const stop = every(10, async () => {
      most = Math.max(most, ++running)
      await new Promise((done) => setTimeout(done, 1000))
      running--
    })
    await vi.advanceTimersByTimeAsync(5000)
    stop()
    expect(most).toBe(1)
  })
  it('ends when the work says so', async () => {
    let runs = 0
    every(1000, async () => ++runs < 2)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(runs).toBe(2)
  })
  it('tells the work that it is over', async () => {
    let seen: AbortSignal | undefined
    const stop = every(1000, async (signal) => void (seen = signal))
    expect(seen?.aborted).toBe(false)
    stop()
    expect(seen?.aborted).toBe(true)
  })
  it('waits while nobody looks', async () => {
    const page = { hidden: false }
    vi.stubGlobal('document', page)
    let runs = 0
    const stop = every(1000, async () => void runs++)
    page.hidden = true
    await vi.advanceTimersByTimeAsync(5000)
    expect(runs).toBe(1)
    page.hidden = false
    await vi.advanceTimersByTimeAsync(1000)
    expect(runs).toBe(2)
    stop()
  })
})
