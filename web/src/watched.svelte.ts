// An answer that is asked for again every few seconds.

import { every } from './every'
import { told } from './live.svelte'
import { api, explain, isAbsent } from './session.svelte'
import type { Question } from './asked'

const pause = 3000 // milliseconds

export class Watched<T> {
  value = $state.raw<T | null>(null)
  wrong = $state('')
  absent = $state(false) // the server has nothing of the kind
  waits = $state(false) // for the first answer

  // follow asks until what it returns is called. The question is a text, so that the
  // same one is not begun again; it is asked again so many milliseconds after each answer.
  follow(question: string, after = pause): (() => void) | void {
    this.value = null
    this.wrong = ''
    this.absent = false
    const asked = JSON.parse(question) as Question | null
    this.waits = asked !== null
    if (!asked) return
    return every(after, async (signal) => {
      try {
        const { value } = await api.json<T>('GET', asked.path, { query: asked.query, signal })
        if (signal.aborted) return false
        this.value = value
        this.wrong = ''
      } catch (error) {
        if (signal.aborted) return false
        this.absent = isAbsent(error)
        this.wrong = this.absent || told(error) ? '' : explain(error)
        return !this.absent
      } finally {
        if (!signal.aborted) this.waits = false
      }
    })
  }
}
