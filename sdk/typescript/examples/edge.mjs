import { Client, denialOf, headersOf } from '@weirhq/client'

const weir = new Client({ url: 'https://weir.example.com', onFailure: 'local', local: { limit: 100, periodMs: 60_000 } })

export default {
  async fetch(request) {
    const { pathname, host } = new URL(request.url)
    const ip = request.headers.get('CF-Connecting-IP') // Cloudflare sets it; take what your platform sets
    const verdict = await weir.check({ ip, host, path: pathname, method: request.method })
    if (!verdict.allowed) {
      const { body, status, headers } = denialOf(verdict)
      return new Response(body, { status, headers })
    }
    return new Response('hello', { headers: headersOf(verdict) })
  },
}
