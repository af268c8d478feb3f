// What the HTTP API tells of counters, leaderboards, hot items and queues.

import type { windows } from '../asked'

// Names are what a server counts, with what a call needs to read each.
export interface Names {
  names: Named[]
  more?: boolean // there are more, or not all were found in time
  usage?: { entries: number; capacity: number; rejected: number } // missing if the store has no maximum
}

export interface Named {
  kind: 'counter' | 'distinct' | 'distribution' | 'board' | 'hot'
  name: string
  group?: string
  window?: (typeof windows)[number]
  zone?: string
  sliding_s?: number // of a sliding board or a hot list
  threshold?: number // of a hot list, and so is cool
  cool?: number
  value?: number // of a counter
}

export interface Counters {
  counters: { name: string; value: number }[]
}

export interface Percentiles {
  start?: string
  count: number
  sum?: number // this and the rest only if there are values
  mean?: number
  min?: number
  max?: number
  p50?: number
  p95?: number
  p99?: number
}

export interface Distributions {
  distributions: { name: string; points: Percentiles[]; merged: Percentiles }[]
}

export interface Place {
  member: string
  rank: number
  score: number
}

export interface Ranking {
  places: Place[]
  members: number
  dropped: number // for whom there was no room
  start?: string
}

export interface Heat {
  item: string
  hits: number
  hot: boolean
  since?: string
}

export interface Hot {
  items: Heat[]
}

export interface Queue {
  name: string
  ready: number
  delayed: number
  leased: number
  capacity: number
  dead: number
  dropped: number
  oldest_ms: number
  wait_ms: number
}

export interface Queues {
  queues: Queue[]
}
