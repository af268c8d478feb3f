import type { Client } from './client.js'
import { Guard, type Incoming, type LimitOptions } from './middleware.js'

interface Reply {
  headers(headers: Record<string, string>): unknown
  code(status: number): unknown
  send(body: string): unknown
  hijack(): unknown
}

/**
 * Limits requests by a weir service, as a hook of Fastify:
 *
 *     app.addHook('onRequest', fastifyLimit(client))
 */
export function fastifyLimit<Request extends { raw: Incoming }>(client: Client, options: LimitOptions<Request> = {}) {
  const guard = new Guard<Request>(client, options)
  return async (request: Request, reply: Reply): Promise<unknown> => {
    const outcome = await guard.decide(request, request.raw)
    if (outcome === 'gone') {
      reply.hijack()
      return reply
    }
    if ('pass' in outcome) {
      reply.headers(outcome.pass)
      return undefined
    }
    reply.headers(outcome.answer.headers)
    reply.code(outcome.answer.status)
    return reply.send(outcome.answer.body)
  }
}
