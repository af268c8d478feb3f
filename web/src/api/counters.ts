// What the HTTP API tells of counters, leaderboards, hot items and queues.

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
