// Who looks at the page, and what there is to tell them.

import { Client, Problem, Unreachable } from './api/client'
import { t } from './words/words.svelte'

export interface Notice {
  id: number
  kind: 'good' | 'bad'
  text: string
}

interface Asking {
  wrong: boolean
  answer: (token: string | null) => void
}

type Scope = 'open' | 'unknown' | 'read' | 'admin' // open: no token is asked for

export const session = $state<{ scope: Scope; asking: Asking | null; notices: Notice[] }>({
  scope: 'open',
  asking: null,
  notices: [],
})

export const api = new Client()

api.askToken = (wrong) =>
  new Promise((resolve) => {
    session.scope = 'unknown'
    session.asking = {
      wrong,
      answer: (token) => {
        session.asking = null
        resolve(token)
        if (token) queueMicrotask(learnScope)
      },
    }
  })
api.onReadOnly = () => (session.scope = 'read')

// mayChange is whether buttons that change something are shown.
export function mayChange(): boolean {
  return session.scope === 'open' || session.scope === 'admin'
}

// learnScope finds out what a token may do by forgiving nobody: the server looks at the
// token first, and then says that no key was named.
async function learnScope(): Promise<void> {
  try {
    await api.send('DELETE', '/v1/keys')
  } catch (error) {
    if (!(error instanceof Problem)) return
    if (error.status === 400) session.scope = 'admin'
    else if (error.is('read-only')) session.scope = 'read'
  }
}

// signOut forgets the token; the next call asks for one.
export function signOut(): void {
  api.forget()
  location.reload()
}

let next = 1

// tell shows a line for a while; what went wrong stays until it is closed.
export function tell(kind: Notice['kind'], text: string): void {
  const id = next++
  session.notices = [...session.notices.slice(-3), { id, kind, text }]
  if (kind === 'good') setTimeout(() => dismiss(id), 6000)
}

export function dismiss(id: number): void {
  session.notices = session.notices.filter((notice) => notice.id !== id)
}

// explain makes a sentence of whatever went wrong.
export function explain(error: unknown): string {
  if (error instanceof Unreachable) return t('app.unreachable')
  return error instanceof Error ? error.message : String(error)
}

// isAbsent is whether a server does not have what was asked for.
export function isAbsent(error: unknown): boolean {
  return error instanceof Problem && (error.is('no-route') || error.status === 404 || error.status === 501)
}
