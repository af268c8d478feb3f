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

const size = (text: string) => new TextEncoder().encode(text).length

// parts are those of a file. One that is NDJSON can have any number of lines, which are sorted then: those above come first.
export function parts(text: string, dry: boolean): Part[] {
  const lines = text.split('\n').flatMap((line, i) => (line.trim() ? [{ text: line.trim() + '\n', number: i + 1, name: '', parent: '', depth: 0 }] : []))
  if (!/^\s*\{(?!\s*"?clients)/.test(text) || (lines.length <= maxLines && size(text) <= maxBytes)) return [{ body: text, assumed: 0, numbers: [] }]
  const named = new Map<string, (typeof lines)[number]>()
  for (const line of lines) {
    try {
      const { client, parent } = JSON.parse(line.text) as Partial<Entry>
      line.name = client ?? ''
      line.parent = parent ?? ''
      named.set(line.name, line)
    } catch {
      // The server says what is wrong with it.
    }
  }
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
  return all
}

// send imports parts, or tries them. It tells how many are done, and waits a little while the server is busy.
export async function send(api: Client, all: Part[], query: { dry_run?: string; prune?: string }, told: (done: number) => void): Promise<Imported> {
  const sum: Required<Imported> = { added: 0, changed: 0, unchanged: 0, deleted: 0, errors: [], warnings: [], changes: [] }
  for (const [i, part] of all.entries()) {
    told(i)
    const answer = await patient(async () => JSON.parse((await api.text('POST', '/v1/clients/import', { body: part.body, query: { ...query, assumed: part.assumed || undefined } })).value) as Imported)
    for (const name of ['added', 'changed', 'unchanged', 'deleted'] as const) sum[name] += answer[name]
    for (const name of ['errors', 'warnings', 'changes'] as const) {
      for (const one of answer[name] ?? []) (sum[name] as Line[]).push({ ...(one as Line), line: part.numbers[one.line - part.assumed - 1] ?? one.line })
    }
  }
  return sum
}
