import type { Client } from './client.js'
import { Guard, type Incoming, type LimitOptions } from './middleware.js'

interface Response {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body: string): unknown
}

/**
 * Limits requests by a weir service, in Express, Connect, or node:http:
 *
 *     app.use(expressLimit(client))
 */
export function expressLimit<Request extends Incoming>(client: Client, options: LimitOptions<Request> = {}) {
  const guard = new Guard<Request>(client, options)
  return async (request: Request, response: Response, next: (error?: unknown) => void): Promise<void> => {
    try {
      const outcome = await guard.decide(request, request)
      if (outcome === 'gone') return
      const passes = 'pass' in outcome
      for (const [name, value] of Object.entries(passes ? outcome.pass : outcome.answer.headers)) response.setHeader(name, value)
      if (!passes) {
        response.statusCode = outcome.answer.status
        response.end(outcome.answer.body)
        return
      }
    } catch (error) {
      next(error)
      return
    }
    next()
  }
}
