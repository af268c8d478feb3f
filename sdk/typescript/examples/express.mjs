import express from 'express'
import { Client } from '@weirhq/client'
import { expressLimit } from '@weirhq/client/express'

const weir = new Client({ url: process.env.WEIR_URL ?? 'http://127.0.0.1:8080' })
export const app = express()
app.use(
  expressLimit(weir, {
    request: (req) => ({ user: req.session?.user }), // from your login, not from what the client claims
    skip: (req) => req.path === '/healthz',
  }),
)
app.get('/api/items', (req, res) => res.json([]))
