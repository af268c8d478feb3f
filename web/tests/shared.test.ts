import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { share } from '../src/shared'

// Locks as browsers have them: one holder, a queue, and a way to take the place by force.
class Locks {
  holder: { lose: (error: Error) => void } | null = null
  queue: (() => void)[] = []

  async request(_: string, options: { signal?: AbortSignal; steal?: boolean }, work: () => Promise<void>): Promise<void> {
    if (options.steal) {
      this.holder?.lose(new Error('stolen'))
      this.holder = null
    } else if (this.holder || this.queue.length > 0) {
      await new Promise<void>((granted, denied) => {
        this.queue.push(granted)
        options.signal?.addEventListener('abort', () => {
          this.queue = this.queue.filter((one) => one !== granted)
          denied(new Error('aborted'))
        })
      })
    }
    const me = { lose: (_: Error) => {} }
    this.holder = me
    const lost = new Promise<never>((_, lose) => (me.lose = lose))
    try {
      await Promise.race([work(), lost])
    } finally {
      if (this.holder === me) {
        this.holder = null
        this.queue.shift()?.()
      }
    }
  }
}

const ended = (signal: AbortSignal) => new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())))

class Tab {
  leads = 0
  heard: string[] = []
  tell: (message: string) => void = () => {}
  stop: () => void
  constructor(locks: Locks | undefined) {
    const lead = async (tell: (message: string) => void, signal: AbortSignal) => {
      this.leads++
      this.tell = tell
      await ended(signal)
      this.leads--
    }
    this.stop = share<string>('weir-test', lead, (message) => this.heard.push(message), locks as unknown as LockManager)
  }
}

let tabs: Tab[] = []
const open = (locks: Locks | undefined) => {
  const tab = new Tab(locks)
  tabs.push(tab)
  return tab
}
// eventually waits until something holds: a busy machine is slow.
const eventually = (holds: () => void) => vi.waitFor(holds, { timeout: 120_000 })
const leaders = () => tabs.map((tab) => tab.leads)

beforeEach(() => void (tabs = []))
afterEach(() => {
  tabs.forEach((tab) => tab.stop())
  vi.useRealTimers()
})

describe('one of all tabs', () => {
  it('leads, and the others hear it', async () => {
    const locks = new Locks()
    for (let i = 0; i < 8; i++) open(locks)
    await eventually(() => expect(leaders()).toEqual([1, 0, 0, 0, 0, 0, 0, 0]))
    tabs[0]!.tell('hello')
    await eventually(() => expect(tabs.slice(1).every((tab) => tab.heard[0] === 'hello')).toBe(true))
    expect(tabs[0]!.heard).toEqual([])
  })
  it('is followed by the next when it goes', async () => {
    const locks = new Locks()
    for (let i = 0; i < 3; i++) open(locks)
    await eventually(() => expect(leaders()).toEqual([1, 0, 0]))
    tabs[0]!.stop()
    await eventually(() => expect(leaders()).toEqual([0, 1, 0]))
    tabs[2]!.stop()
    tabs[1]!.stop()
    await eventually(() => expect(leaders()).toEqual([0, 0, 0]))
  })
  it('loses its place if nothing is heard of it', async () => {
    vi.useFakeTimers()
    const locks = new Locks()
    open(locks)
    open(locks)
    await vi.advanceTimersByTimeAsync(9000)
    expect(leaders()).toEqual([1, 0])
    await vi.advanceTimersByTimeAsync(2000)
    expect(leaders()).toEqual([0, 1])
    tabs[1]!.stop()
    await vi.advanceTimersByTimeAsync(10)
    expect(leaders()).toEqual([1, 0])
  })
  it('is every one where there are no locks', () => {
    open(undefined)
    open(undefined)
    expect(leaders()).toEqual([1, 1])
  })
})
