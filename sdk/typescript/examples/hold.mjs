import { Client } from '@weirhq/client'

const weir = new Client({ url: process.env.WEIR_URL ?? 'http://127.0.0.1:8080' })
const { hold, verdict } = await weir.reserve({ user: 'alice', path: '/chat', cost: { tokens: 700 } }) // an estimate
if (verdict.allowed) {
  const tokens = 512 // … do the work, and count …
  await hold.settle({ tokens }, { timeoutMs: 10_000 }) // no client waits for it
}
