// A rule while somebody edits it, as text and as a form. The text is what counts. The server
// makes one of the other, so that the page needs to know nothing of YAML; whoever edits does
// not wait for it.

import { Problem, type Client } from './api/client'
import type { Formatted } from './api/limits'
import type { Rule, RuleProblem } from './api/types'

export const pause = 250 // milliseconds after the last key
export const again = 2000 // and after a call that failed

export class Draft {
  source = $state('')
  rule = $state.raw<Rule | null>(null) // null while the text cannot be read
  problems = $state.raw<RuleProblem[]>([])

  // What the server is being asked for: to read the text into the form, or to write the form
  // into the text. Whichever is about to be replaced cannot be edited meanwhile, or what is
  // typed there would be lost.
  work = $state<'' | 'reading' | 'writing'>('')
  failed = $state.raw<unknown>(null) // why the last try was in vain; the next one follows

  private call: AbortController | null = null
  private timer: ReturnType<typeof setTimeout> | undefined
  private waiting: (() => void)[] = []

  constructor(private readonly api: Client) {}

  get usable(): boolean {
    return this.rule !== null && !this.problems.some((p) => p.severity === 'error')
  }

  // begin takes another text, and is done when it has been read.
  begin(source: string): Promise<void> {
    this.type(source)
    return this.settle()
  }

  // type is what somebody has made of the text.
  type(source: string): void {
    this.source = source
    this.plan('reading', pause)
  }

  // put is what somebody has made of the form. It changes at once.
  put(rule: Rule): void {
    this.rule = rule
    this.plan('writing', 0)
  }

  // settle waits until text and form are the same again.
  settle(): Promise<void> {
    if (this.work === '') return Promise.resolve()
    const settled = new Promise<void>((done) => this.waiting.push(done))
    if (!this.call) this.plan(this.work, 0)
    return settled
  }

  // stop ends everything that is under way.
  stop(): void {
    clearTimeout(this.timer)
    this.call?.abort()
    this.call = null
  }

  private plan(work: 'reading' | 'writing', wait: number): void {
    this.stop()
    this.work = work
    this.timer = setTimeout(() => void this.run(work), wait)
  }

  private async run(work: 'reading' | 'writing'): Promise<void> {
    const call = (this.call = new AbortController())
    const body = work === 'writing' ? { source: this.source, rule: this.rule } : { source: this.source }
    try {
      const { value } = await this.api.json<Formatted>('POST', '/v1/rules/format', { body, signal: call.signal })
      if (call.signal.aborted) return
      // A text that is being typed stays as it is, or the cursor would jump.
      if (work === 'writing') this.source = value.source
      this.rule = value.rule
      this.problems = value.problems
      this.failed = null
      this.done()
    } catch (error) {
      if (call.signal.aborted) return
      this.call = null
      this.failed = error
      // What the server does not take, it will not take again.
      if (error instanceof Problem && error.status < 500 && error.status !== 429) {
        this.rule = null
        this.done()
      } else {
        this.timer = setTimeout(() => void this.run(work), again)
      }
    }
  }

  private done(): void {
    this.call = null
    this.work = ''
    this.waiting.splice(0).forEach((settled) => settled())
  }
}
