// Who looks at the page, and what there is to tell them.

import { Client, Problem, Unreachable } from './api/client'
import type { Whoami } from './api/stats'
import { visible } from './format'
import { problem, t, trouble } from './words/words.svelte'

export interface Notice {
  id: number
  kind: 'good' | 'warn' | 'bad'
  text: string
}

interface Asking {
  wrong: boolean
  answer: (token: string | null) => void
}

type Scope = 'unknown' | 'read' | 'admin' // read: whatever is less than admin

interface Session {
  scope: Scope
  holder: string // whose token it is
  keeps: boolean // they may change the directory of clients
  signed: boolean // somebody can sign out
  asking: Asking | null
  notices: Notice[]
  slow: string[] // paths of calls that the server takes long to answer
}

export const session = $state<Session>({
  scope: 'unknown',
  holder: '',
  keeps: false,
  signed: false,
  asking: null,
  notices: [],
  slow: [],
})

export const api = new Client()

// Tabs that ask for a token at the same time need one only.
const signs = globalThis.BroadcastChannel && new BroadcastChannel('weir-session')
if (signs) signs.onmessage = () => session.asking?.answer('')

api.askToken = (wrong) =>
  new Promise((resolve) => {
    session.scope = 'unknown'
    session.asking = {
      wrong,
      answer: (token) => {
        session.asking = null
        resolve(token)
        if (token !== null) void learn()
      },
    }
  })
api.onSlow = (more, path) => {
  const first = session.slow.indexOf(path)
  session.slow = more > 0 ? [...session.slow, path] : session.slow.filter((_, i) => i !== first)
}
const mostWarnings = 3 // that are shown of one change
api.onWarnings = (all) => {
  const lines = all.slice(0, mostWarnings).map((p) => visible([p.rule, problem(p)].filter(Boolean).join(': ')))
  if (all.length > mostWarnings) lines.push(t('app.warnings.more', { n: all.length - mostWarnings }))
  tell('warn', [t('app.warnings'), ...lines].join('\n'))
}
api.onReadOnly = () => (session.scope = 'read')

// mayChange is whether buttons that change something are shown. Until it is known who
// looks at the page, there are none.
export function mayChange(): boolean {
  return session.scope === 'admin'
}

let learning: Promise<void> | null = null

// learn finds out who looks at the page, and what they may do. While a token is being
// asked for it waits for that.
export function learn(): Promise<void> {
  learning ??= api
    .json<Whoami>('GET', '/v1/whoami')
    .then(({ value }) => {
      session.scope = value.scope === 'admin' ? 'admin' : 'read'
      session.keeps = value.clients ?? false
      session.holder = value.name
      session.signed = value.via ? value.via === 'session' || value.via === 'token' : api.hasToken
      if (session.signed && value.via === 'session') signs?.postMessage('signed in')
    })
    .catch((error: unknown) => {
      // Whoever has no token is asked again by the next call.
      if (error instanceof Problem && error.status < 500) return
      setTimeout(learn, 5000)
    })
    .finally(() => (learning = null))
  return learning
}

// signOut ends the session in all tabs; the next call asks for a token.
export async function signOut(): Promise<void> {
  await api.signOut()
  location.reload()
}

let next = 1

// tell shows a text for a while; what is wrong stays until it is closed, and is shown once.
export function tell(kind: Notice['kind'], text: string): void {
  const id = next++
  session.notices = [...session.notices.filter((notice) => notice.text !== text).slice(-3), { id, kind, text }]
  if (kind === 'good') setTimeout(() => dismiss(id), 6000)
}

export function dismiss(id: number): void {
  session.notices = session.notices.filter((notice) => notice.id !== id)
}

// explain makes a sentence of whatever went wrong.
export function explain(error: unknown): string {
  if (error instanceof Unreachable) return t('app.unreachable')
  if (error instanceof Problem) return trouble(error)
  return error instanceof Error ? error.message : String(error)
}

// isAbsent is whether a server does not have what was asked for.
export function isAbsent(error: unknown): boolean {
  return error instanceof Problem && (error.is('not-enabled') || error.is('not-found'))
}
