// One of all tabs of a browser does the work, and tells the others.

// Leading does the work until the signal, or until there is no more to do.
export type Leading<T> = (tell: (message: T) => void, signal: AbortSignal) => Promise<void>

const patience = 10_000 // milliseconds without a word after which a leader is taken for dead

// share takes part until what it returns is called. A tab that hears nothing from the one that
// leads takes its place. Browsers have locks on pages that came safely only; elsewhere, every
// tab works for itself.
export function share<T>(name: string, lead: Leading<T>, hear: (message: T) => void, locks: LockManager | undefined = globalThis.navigator?.locks): () => void {
  const stopped = new AbortController()
  if (!locks) {
    void lead(() => {}, stopped.signal)
    return () => stopped.abort()
  }
  const channel = new BroadcastChannel(name)
  let leading = false
  let waiting = new AbortController() // for the lock
  let silence: ReturnType<typeof setTimeout> | undefined

  const listen = () => {
    clearTimeout(silence)
    silence = setTimeout(() => void take(true), patience)
  }
  channel.onmessage = (event: MessageEvent<T>) => {
    if (leading || stopped.signal.aborted) return
    listen()
    hear(event.data)
  }

  async function take(steal: boolean): Promise<void> {
    waiting.abort()
    const mine = (waiting = new AbortController())
    const over = new AbortController()
    try {
      await locks!.request(name, steal ? { steal: true } : { signal: mine.signal }, async () => {
        if (stopped.signal.aborted) return
        leading = true
        clearTimeout(silence)
        const tell = (message: T) => void (stopped.signal.aborted || channel.postMessage(message))
        await lead(tell, AbortSignal.any([stopped.signal, over.signal]))
      })
      leading = false
    } catch {
      // It was stopped, has given up waiting to take the place by force, or has lost its own.
      if (mine.signal.aborted) return
      over.abort()
      leading = false
      listen()
      void take(false)
    }
  }

  listen()
  void take(false)
  return () => {
    stopped.abort()
    waiting.abort()
    clearTimeout(silence)
    channel.close()
  }
}
