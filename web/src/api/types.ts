// What the HTTP API answers, as docs/reference/api.md has it.

export type Words = string | string[]

export type Quota = string | string[] | { limit?: string; limits?: string[]; levels?: Record<string, Quota>; burst?: number; zone?: string; starts?: string | number; concurrency?: number; priority?: string; lease?: string }

export interface Rule {
  id: string
  description?: string
  match?: { method?: Words; host?: Words; path?: Words; attributes?: Record<string, Words>; when?: string }
  key: Words
  algorithm?: string
  limit?: string
  limits?: string[]
  levels?: Record<string, Quota>
  burst?: number
  zone?: string
  starts?: string | number
  buckets?: number
  shape?: boolean
  concurrency?: number
  hold_ttl?: string
  wait?: string | { up_to?: string; queued?: number }
  priority?: string
  shares?: Record<string, string>
  tiers?: Record<string, Quota>
  overrides?: Record<string, Quota>
  mode?: string
  on_failure?: string | { local?: string; limit?: string; then?: string }
  count_denied?: boolean | string // unless_denied_earlier
  cost?: number | { estimate?: number | string; default?: number; actual?: string }
  count?: { status?: Words }
  unit?: string
  on_expiry?: string
  lease?: string
  tokens?: { api?: string; price?: string; weights?: Weights; models?: Record<string, Weights>; default_output?: number; reserve?: { output?: string | number; at_most?: string | number }; on_overrun?: string }
  mcp?: Record<string, never>
  warn?: Words
  penalty?: string | { after?: number; within?: string; for?: string }
  deny?: { status?: number; code?: number; message?: string }
}

export interface Weights {
  input?: number
  output?: number
  cached?: number
  cache_write?: number
  cache_write_1h?: number
  audio_input?: number
  image_input?: number
  reasoning?: number
  audio_output?: number
  image_output?: number
  tool_call?: number
}

export interface List {
  ip?: Words
  user?: Words
  api_key?: Words
}

export interface Rules {
  version: number
  in_force: number // the version by which the server judges
  unavailable?: boolean // what is stored cannot be read; these are the rules in force
  levels?: string[] // from the top down
  rules: Rule[]
  exempt?: List
  block?: List
}

export interface RuleProblem {
  severity: 'error' | 'warning'
  code: string
  file?: string
  line?: number
  column?: number
  rule?: string
  field?: string
  message: string
  excerpt?: string
}

export interface Version {
  number: number
  time: string
  author?: string
  summary?: string
  source?: string
}

export interface Written {
  version: Version
  warnings?: RuleProblem[]
  comments_kept: boolean
}

// Display is the numbers of a rule that counts money, for people.
export interface Display {
  policy: string
  cost: string
  limit?: string // absent, as remaining, if the store was unavailable
  remaining?: string
  reserved?: string
}

export interface LimitAnswer {
  rule: string
  key: string
  algorithm: string
  policy: string
  allowed: boolean
  shadow?: boolean
  soft?: boolean // shadow, and the client is told
  asked: boolean
  cost: number
  limit: number
  remaining: number
  reserved?: number // units that a denied request lacks and that others have only reserved
  leased?: number // units that other instances have on lease, as last known
  reset_at: number
  reset_after_ms: number
  retry_after_ms: number | null
  delay_ms: number
  display?: Display
  penalty?: boolean // one of the rule runs
  warning?: number // percent; the highest threshold that was reached
  override?: { id: string; ends_at: string } // from which the limit comes
}

export interface CheckAnswer {
  allowed: boolean
  reason: string
  status?: number
  rule?: string
  code?: number
  message?: string
  limit: number
  remaining: number
  reset_after_ms: number
  retry_after_ms: number | null
  delay_ms: number
  display?: Display
  degraded: boolean
  version: number
  results: LimitAnswer[]
}

export interface Standing {
  key: string
  tier?: string
  tier_from: 'none' | 'asked' | 'seen' | 'unknown'
  version: number
  results: LimitAnswer[]
  left_out?: number // results
  directory?: Entry[] // the client there, and those that it belongs to
}

// Entry is a client of the directory.
export interface Entry {
  client: string
  parent?: string
  tier?: string
  zone?: string
  starts?: string
  limits?: Record<string, Quota>
  blocked?: boolean
  note?: string
  by?: string
  at?: string
}

export interface Entries {
  clients: Entry[]
  next?: string
}

export interface Lane {
  algorithm: string
  limit: string
  allowed: number
  denied: number
  delayed: number
  longest_delay_us: number
  worst_window: number
  worst_window_begin_us: number
  worst_window_end_us: number
  bound: number
  first_denial_us?: number
  allowed_per_slice: number[]
  denied_per_slice: number[]
  released_per_slice: number[]
  remaining_per_slice?: number[]
  capacity?: number
}

export interface Simulation {
  limit: string
  traffic: string
  requests: number
  keys: number
  offered: number
  axis: { begin_us: number; slice_us: number; slices: number; ticks: { at_us: number; label: string }[] }
  offered_per_slice: number[]
  lanes: Lane[]
  notes?: string[]
  summary: string
}
