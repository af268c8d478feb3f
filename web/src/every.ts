// Asking again and again.

// every calls work at once, and again so many milliseconds after it is done, until the
// work says false or what it returns is called. A page that nobody looks at waits.
export function every(ms: number, work: (signal: AbortSignal) => Promise<boolean | void>): () => void {
  const aborted = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const again = () => {
    if (aborted.signal.aborted) return
    timer = setTimeout(() => {
      if (globalThis.document?.hidden) again()
      else void run()
    }, ms)
  }
  const run = async () => {
    if ((await work(aborted.signal)) !== false) again()
  }
  void run()
  return () => {
    aborted.abort()
    clearTimeout(timer)
  }
}
