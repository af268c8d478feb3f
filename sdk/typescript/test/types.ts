// The types fit those of the frameworks, and say what is wrong. It is compiled, not run.
import express from 'express'
import Fastify from 'fastify'
import { Client, denialOf, type Verdict } from '@weirhq/client'
import { expressLimit } from '@weirhq/client/express'
import { fastifyLimit } from '@weirhq/client/fastify'

const weir = new Client({ url: 'http://127.0.0.1:8080', onFailure: 'local', local: { limit: 1, periodMs: 1 } })
express().use(expressLimit(weir))
express().use(expressLimit(weir, { request: (req: express.Request) => ({ user: req.get('x'), cost: { tokens: 1 } }), skip: (req) => req.path === '/' }))
Fastify().addHook('onRequest', fastifyLimit(weir))
Fastify().addHook('onRequest', fastifyLimit(weir, { request: (req) => ({ ip: req.raw.socket.remoteAddress }) }))

export async function use(): Promise<string> {
  const verdict: Verdict = await weir.check({ user: 'alice', apiKey: 'k' }, { signal: AbortSignal.timeout(1), timeoutMs: 5 })
  // @ts-expect-error the field is apiKey
  await weir.check({ api_key: 'k' })
  const { hold } = await weir.reserve({ cost: 1 }, { ttlMs: 1 })
  const settled = await hold.settle({ tokens: 1 })
  const [today]: number[] = await weir.counters.add({ name: 'views', window: 'day', by: 2 })
  // @ts-expect-error a counter has a name
  await weir.counters.set([{ value: today }])
  const [ms] = await weir.counters.distributions('ms', { window: 'minute', n: 5, timeoutMs: 5 })
  if (ms && ms.merged.p95 > 1000) return String((await weir.counters.history(['views', 'likes'], { window: 'month' }))[0]?.[0]?.start?.getTime())
  return denialOf(verdict).body + String(settled.parts[0]?.used)
}
