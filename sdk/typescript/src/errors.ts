/**
 * Why a call failed.
 *
 * - invalid: the request is invalid; the message says which field, and what to write.
 * - hold-unknown: there is no such hold, or it ended too long ago.
 * - hold-expired: the hold has expired. After these two, charge what is not charged yet with charge.
 * - out-of-range: a counter would leave its range; nothing was counted.
 * - counters-full: the counters in memory are full, and the call has a new name; nothing was counted.
 * - unauthorized: weir needs a token, or one with another right.
 * - unavailable: weir is unavailable. Only the methods of a Hold and of Counters throw it. Call a
 *   hold again, because it ends once, even if weir has got the first call. A change of counters may
 *   have been made.
 */
export type ErrorCode = 'invalid' | 'hold-unknown' | 'hold-expired' | 'out-of-range' | 'counters-full' | 'unauthorized' | 'unavailable'

/** An error of a call. */
export class WeirError extends Error {
  override readonly name = 'WeirError'

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
  }
}

// clip shortens what a server said.
export function clip(text: string): string {
  return text.length > 300 ? text.slice(0, 300) + '…' : text
}
