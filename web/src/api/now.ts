// What the HTTP API tells of what is wrong now. Times are Unix seconds, except those of alerts.

import type { Alert, Summary } from './stats'

export interface Now {
  at: number
  store: Summary['store'] & { kind?: 'memory' | 'redis' }
  rules: { version: number; count: number; written_at?: number; not_loaded?: Summary['not_loaded'] }
  alerts?: { active: number; silenced: number; latest: Alert[]; quiet?: Alert[] } // missing if the server evaluates none
  denied?: {
    // missing if the server keeps no statistics
    window_s: number
    requests: number
    denied: number
    denied_share: number
    high?: boolean // so many that somebody should look
    rule?: string // which denied most
    local?: boolean
    unavailable?: boolean // they cannot be read, so it is not known
    client?: DeniedClient
    complete_since?: number // the archive has lost what was before
    blocked?: Counted[] // clients on the block list that limits denied before
  }
}

export interface Counted {
  key: string
  count: number
  error: number // by how much the count may be too high
}

export interface DeniedClient extends Counted {
  high?: boolean // it alone is denied so often that somebody should act
  sampling: number // above 1, the count is an estimate
  most?: Counted // the most denied key, if an address is named instead
  rule?: string
  endpoint?: { method: string; path: string }
  last_at: number
}
