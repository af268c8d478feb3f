// A file of clients on its way to the server: in parts that one call takes.

import { patient, type Client } from './api/client'
import type { Entry } from './api/types'

export const maxLines = 1000 // of a call
export const maxBytes = 1 << 20

export interface Line {
  line: number // of the file; 0 is a client that prune deletes
  field?: string
  message: string
}

export interface Change {
  line: number
  before?: Entry // absent if the client is added
  after?: Entry // absent if it is deleted
}

export interface Imported {
  added: number
  changed: number
  unchanged: number
  deleted: number
  errors: Line[]
  warnings?: Line[]
  changes?: Change[]
}

// Part is the body of a call. Its first lines may be assumed: a dry run needs them, because they are in another part.
export interface Part {
  body: string
  assumed: number
  numbers: number[] // of its other lines in the file; none if they are those of the body
}

// Parts are those of a file, and what is wrong with lines that none of them has.
export interface Parts {
  all: Part[]
  errors: Line[]
}

// Sum is what became of all parts. If there is an error, those from one on were not imported.
export interface Sum extends Required<Imported> {
  error?: unknown
}

const size = (text: string) => new TextEncoder().encode(text).length

// parts are those of a file. One that is NDJSON can have any number of lines, which are sorted then: those above come first.
// The server sees a part at a time, so it cannot notice that a client is in two.
export function parts(text: string, dry: boolean): Parts {
  let lines = text.split('\n').flatMap((line, i) => (line.trim() ? [{ text: line.trim() + '\n', number: i + 1, name: '', parent: '', depth: 0 }] : []))
  if (!/^\s*\{(?!\s*"?clients)/.test(text) || (lines.length <= maxLines && size(text) <= maxBytes)) return { all: [{ body: text, assumed: 0, numbers: [] }], errors: [] }
  const named = new Map<string, (typeof lines)[number]>()
  const errors: Line[] = []
  lines = lines.filter((line) => {
    try {
      const { client, parent } = JSON.parse(line.text) as Partial<Entry>
      if (typeof client === 'string') line.name = client
      if (typeof parent === 'string') line.parent = parent
    } catch {
      // The server says what is wrong with it, as with a line without a client.
    }
    const before = named.get(line.name)
    if (before) errors.push({ line: line.number, field: 'client', message: `client: ${JSON.stringify(line.name)} is in line ${before.number}, too; remove one of the two` })
    else if (line.name) named.set(line.name, line)
    return !before
  })
  const above = (line: (typeof lines)[number]) => {
    const all = []
    for (let next = named.get(line.parent); next && all.length < 6; next = named.get(next.parent)) all.push(next)
    return all
  }
  for (const line of lines) line.depth = above(line).length
  lines.sort((a, b) => a.depth - b.depth)
  const all: Part[] = []
  for (let at = 0; at < lines.length; ) {
    const there = new Set<string>()
    const numbers: number[] = []
    let [assumed, own, bytes, count] = ['', '', 0, 0]
    for (; at < lines.length; at++) {
      const line = lines[at]!
      const more = dry ? above(line).filter((l) => !there.has(l.name)) : []
      const longer = size(more.map((l) => l.text).join('') + line.text)
      if (numbers.length > 0 && (count + more.length + numbers.length >= maxLines || bytes + longer > maxBytes)) break
      for (const l of [...more, line]) there.add(l.name)
      assumed += more.map((l) => l.text).join('')
      own += line.text
      count += more.length
      bytes += longer
      numbers.push(line.number)
    }
    all.push({ body: assumed + own, assumed: count, numbers })
  }
  return { all, errors }
}

// send imports parts, or tries them, until a call fails. It tells how many are done, and waits a little while the server is busy.
export async function send(api: Client, file: Parts, query: { dry_run?: string; prune?: string }, told: (done: number) => void): Promise<Sum> {
  const sum: Sum = { added: 0, changed: 0, unchanged: 0, deleted: 0, errors: [...file.errors], warnings: [], changes: [] }
  for (const [i, part] of file.all.entries()) {
    told(i)
    let answer: Imported
    try {
      answer = await patient(async () => JSON.parse((await api.text('POST', '/v1/clients/import', { body: part.body, query: { ...query, assumed: part.assumed || undefined } })).value) as Imported)
    } catch (error) {
      return { ...sum, error }
    }
    for (const name of ['added', 'changed', 'unchanged', 'deleted'] as const) sum[name] += answer[name]
    for (const name of ['errors', 'warnings', 'changes'] as const) {
      for (const one of answer[name] ?? []) (sum[name] as Line[]).push({ ...(one as Line), line: part.numbers[one.line - part.assumed - 1] ?? one.line })
    }
  }
  return sum
}
