// An answer that is kept up to date while somebody looks at it.

import { untrack } from 'svelte'
import type { Call } from './api/client'
import { every } from './every'
import { live, told } from './live.svelte'
import { api, explain, isAbsent } from './session.svelte'

export interface Wanted {
  path: string
  query: NonNullable<Call['query']>
}

const atLeast = 15_000 // milliseconds after which it is asked for, whether or not anything happened
const settled = 4000 // milliseconds after which what happened is in every answer

export class Followed<T> {
  value = $state.raw<T | null>(null)
  wrong = $state('')
  absent = $state(false) // the server has nothing of the kind

  // follow asks again so many milliseconds after each answer, or once if that is 0, until what
  // it returns is called. It asks only if there were requests since: nothing else changes what
  // statistics say. Until the first answer, the last one of another question stays.
  follow(pause: number, wanted: () => Wanted | null): () => void {
    let at = 0 // when it was answered
    let counted = -1
    let moved = 0 // when there were requests
    const work = async (signal: AbortSignal) => {
      const asked = wanted()
      if (!asked) {
        this.value = null
        this.wrong = ''
        return false
      }
      if (counted !== live.counted) moved = Date.now()
      counted = live.counted
      if (at > moved + settled && Date.now() - at < atLeast) return
      try {
        const { value } = await api.json<T>('GET', asked.path, { query: asked.query, signal })
        if (signal.aborted) return false
        this.value = value
        this.wrong = ''
        at = Date.now()
      } catch (error) {
        if (signal.aborted) return false
        this.absent = isAbsent(error)
        this.wrong = this.absent || told(error) ? '' : explain(error)
        return !this.absent
      }
      return pause > 0
    }
    // What is asked for may depend on the time or on what happened last. That must not start it
    // over: where an answer takes longer than a second, there would never be one.
    return untrack(() => every(pause || atLeast, work))
  }
}
