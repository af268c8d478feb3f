import { Client } from '@weirhq/client'

const weir = new Client({ url: process.env.WEIR_URL ?? 'http://127.0.0.1:8080' })
const verdict = await weir.check({ user: 'alice', path: '/api/items' })
if (!verdict.allowed) {
  console.log(`denied; try again in ${Math.ceil(verdict.retryAfterMs / 1000)} s`)
}
console.log(verdict.allowed, verdict.remaining)
