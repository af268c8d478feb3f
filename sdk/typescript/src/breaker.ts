import type { Settings } from './options.js'

// maxFailures is how many calls in a row must fail before the breaker opens.
const maxFailures = 3

// between is how long no call is made while the breaker is open, more or less: many clients
// shall not come at once.
const between = 500

// Breaker keeps calls from a service that is unavailable, so that they do not wait. While it is
// open, one call from time to time tries the service. There is no probe in the background,
// because edge runtimes stop timers between requests.
export class Breaker {
  #failures = 0 // in a row
  #next = 0 // when to try again, if it is open
  #why: unknown

  constructor(readonly settings: Settings) {}

  // enter throws why the service is not asked just now.
  enter(): void {
    if (this.#failures < maxFailures) return
    if (performance.now() < this.#next) throw this.#why
    this.#wait()
  }

  succeeded(): void {
    if (this.#failures >= maxFailures) this.settings.logger.info('weir is available again', { url: this.settings.url })
    this.#failures = 0
  }

  failed(why: Error): void {
    this.#why = why
    if (++this.#failures === maxFailures) {
      this.#wait()
      this.settings.logger.warn('weir is unavailable; requests are answered without it', { url: this.settings.url, error: why.message })
    }
  }

  #wait(): void {
    this.#next = performance.now() + between * (0.75 + Math.random() / 2)
  }
}
