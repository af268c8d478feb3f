import { Client } from '@weirhq/client'

const { counters } = new Client({ url: process.env.WEIR_URL ?? 'http://127.0.0.1:8080', timeoutMs: 10_000 })
const [views, users] = await counters.add([
  { name: 'views', window: 'day', zone: 'Asia/Shanghai' },
  { name: 'users', window: 'month', distinct: true, members: ['alice'] },
])
await counters.observe({ name: 'checkout_ms', window: 'minute', values: [12.5, 14, 180] })
const [days] = await counters.history('views', { window: 'day', zone: 'Asia/Shanghai', n: 7 })
const [checkout] = await counters.distributions('checkout_ms', { window: 'minute', n: 60 })
console.log(views, users, days.length, checkout.merged.p95)
