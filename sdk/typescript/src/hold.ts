import { settledFields, type Settled } from './api.js'
import type { Fields } from './decode.js'
import type { CallOptions } from './options.js'

type Ask = <T>(path: string, message: object, fields: Fields, call?: CallOptions) => Promise<T>

/**
 * A charge that ends later, when the real cost is known. If its id is empty, nothing was charged,
 * and its methods do nothing.
 */
export class Hold {
  readonly #ask: Ask

  constructor(
    readonly id: string,
    /** By the clock of weir's store; undefined if it is not known. */
    readonly expiresAt: Date | undefined,
    ask: Ask,
  ) {
    this.#ask = ask
  }

  /**
   * Ends the hold with the units that were used: a number for every rule, or numbers by unit. Less
   * than was reserved is refunded; more is charged, even beyond the limit. If the hold has ended,
   * the answer is that of the first time.
   */
  settle(used: number | Record<string, number>, call?: CallOptions): Promise<Settled> {
    return this.#end('/v1/settle', { used }, call)
  }

  /** Ends the hold as if nothing was used. */
  cancel(call?: CallOptions): Promise<Settled> {
    return this.#end('/v1/cancel', {}, call)
  }

  /** Lets the hold expire after ttlMs from now on; 0 is one minute. */
  extend(ttlMs = 0, call?: CallOptions): Promise<Settled> {
    return this.#end('/v1/extend', { ttl_ms: ttlMs }, call)
  }

  async #end(path: string, message: object, call?: CallOptions): Promise<Settled> {
    if (this.id === '') return { state: 'settled', parts: [] }
    return this.#ask<Settled>(path, { hold: this.id, ...message }, settledFields, call)
  }
}
