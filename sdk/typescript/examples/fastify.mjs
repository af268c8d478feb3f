import Fastify from 'fastify'
import { Client } from '@weirhq/client'
import { fastifyLimit } from '@weirhq/client/fastify'

const weir = new Client({ url: process.env.WEIR_URL ?? 'http://127.0.0.1:8080' })
export const app = Fastify()
app.addHook('onRequest', fastifyLimit(weir, { request: (req) => ({ user: req.session?.user }) }))
app.get('/api/items', async () => [])
