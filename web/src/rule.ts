// A rule as text and as a form, kept in step: the text is what counts.

import { isMap, isScalar, isSeq, parseDocument, type Document } from 'yaml'
import type { List, Quota, Rule, RuleProblem, Words } from './api/types'

export const algorithms = ['token_bucket', 'fixed_window', 'sliding_window', 'sliding_buckets', 'sliding_log', 'leaky_bucket']

// order is in which people read a rule.
const order = [
  'id', 'description', 'match', 'key', 'algorithm', 'limit', 'limits', 'burst', 'buckets', 'shape', 'tiers', 'overrides',
  'mode', 'on_failure', 'count_denied', 'cost', 'deny',
]

const style = { lineWidth: 0, flowCollectionPadding: false } as const

// read takes a rule out of its text; null while that cannot be read, or is none.
export function read(source: string): Rule | null {
  const document = parseDocument(source)
  if (document.errors.length > 0) return null
  if (document.contents === null) return {} as Rule
  return isMap(document.contents) ? (document.toJS({ maxAliasCount: 0 }) as Rule) : null
}

// set changes one field of a rule's text, and leaves the rest with its comments as it
// is. Without a value the field is removed, and what is empty then.
export function set(source: string, path: string[], value: unknown): string {
  const document = parseDocument(source)
  if (document.errors.length > 0) return source
  if (!isMap(document.contents)) document.contents = document.createNode({}) as never
  if (value === undefined) {
    document.deleteIn(path)
    for (let depth = path.length - 1; depth > 0; depth--) {
      const parent = document.getIn(path.slice(0, depth))
      if (isMap(parent) && parent.items.length === 0) document.deleteIn(path.slice(0, depth))
    }
  } else {
    const node = document.createNode(value)
    if (isSeq(node)) node.flow = true
    if (isMap(node) && path.length > 1) node.flow = true
    document.setIn(path, node)
  }
  if (isMap(document.contents)) {
    document.contents.items.sort((a, b) => place(a.key) - place(b.key))
  }
  return document.toString(style)
}

function place(key: unknown): number {
  const at = order.indexOf(String(isScalar(key) ? key.value : key))
  return at < 0 ? order.length : at
}

// words writes one value or a list as people type them.
export function words(value: Words | undefined): string {
  return value === undefined || value === null ? '' : Array.isArray(value) ? value.join(', ') : String(value)
}

// fromWords is the other way round; undefined for nothing.
export function fromWords(text: string): Words | undefined {
  const all = text.split(',').map((word) => word.trim()).filter((word) => word !== '')
  return all.length === 0 ? undefined : all.length === 1 ? all[0] : all
}

// limits are the limits of a rule or a quota, as people type them.
export function limits(of: { limit?: string; limits?: string[] }): string {
  return words(of.limits ?? of.limit)
}

// quota writes a tier's or a client's limit: "1000/1m burst 2000", "50/1s, 10000/1d".
export function quota(of: Quota): string {
  if (typeof of === 'string' || Array.isArray(of)) return words(of)
  return limits(of) + (of.burst === undefined ? '' : ' burst ' + of.burst)
}

// fromQuota is the other way round.
export function fromQuota(text: string): Quota {
  const burst = /\s+burst\s+(\d+)\s*$/.exec(text)
  const all = fromWords(burst ? text.slice(0, burst.index) : text) ?? ''
  if (!burst) return all
  return Array.isArray(all) ? { limits: all, burst: Number(burst[1]) } : { limit: all, burst: Number(burst[1]) }
}

// fieldOf tells in which field of the form a problem is shown; '' for none.
export function fieldOf(problem: RuleProblem): string {
  const [outer = '', inner = ''] = (problem.field ?? '').split('.')
  if (outer === 'match' || outer === 'deny') return within[outer].includes(inner) ? inner : outer
  return outer === 'limits' ? 'limit' : order.includes(outer) ? outer : ''
}

const within = { match: ['method', 'host', 'path', 'attributes'], deny: ['status', 'code', 'message'] }

// offsetOf is where a line and a column are in a text.
export function offsetOf(source: string, line: number, column: number): number {
  let at = 0
  for (let i = 1; i < line; i++) {
    const end = source.indexOf('\n', at)
    if (end < 0) return source.length
    at = end + 1
  }
  return Math.min(source.length, at + column - 1)
}

export type ListName = 'exempt' | 'block'

// isListed is whether a list has exactly this value.
export function isListed(list: List | undefined, kind: keyof List, value: string): boolean {
  const of = list?.[kind]
  return Array.isArray(of) ? of.includes(value) : of === value
}

// addTo puts a value on a list of a whole document of rules. Everything else stays as
// people have written it.
export function addTo(source: string, list: ListName, kind: keyof List, value: string): string {
  const document = readable(source)
  const there = document.getIn([list, kind])
  const all = isSeq(there) ? (there.toJSON() as string[]) : there === undefined ? [] : [String(there)]
  if (all.includes(value)) return source
  const quick = splice(source, document, list, kind, value)
  if (quick !== null && same(quick, document, list, kind, [...all, value])) return quick
  change(document, list, kind, [...all, value])
  return document.toString(style)
}

// removeFrom takes a value off a list again.
export function removeFrom(source: string, list: ListName, kind: keyof List, value: string): string {
  const document = readable(source)
  const there = document.getIn([list, kind])
  const all = isSeq(there) ? (there.toJSON() as string[]) : there === undefined ? [] : [String(there)]
  if (!all.includes(value)) return source
  const left = all.filter((other) => other !== value)
  change(document, list, kind, left)
  return document.toString(style)
}

function readable(source: string): Document.Parsed {
  const document = parseDocument(source)
  if (document.errors.length > 0) throw document.errors[0]!
  return document
}

function change(document: Document, list: ListName, kind: keyof List, values: string[]): void {
  if (values.length === 0) {
    document.deleteIn([list, kind])
    const rest = document.get(list)
    if (isMap(rest) && rest.items.length === 0) document.delete(list)
    return
  }
  const there = document.getIn([list, kind])
  if (isSeq(there)) {
    for (let i = there.items.length - 1; i >= 0; i--) {
      const item = there.items[i]
      if (!values.includes(String(isScalar(item) ? item.value : item))) there.delete(i)
    }
    const kept = there.toJSON() as string[]
    for (const value of values) if (!kept.includes(value)) there.add(document.createNode(value))
    return
  }
  const node = document.createNode(values)
  if (isSeq(node)) node.flow = true
  document.setIn([list, kind], node)
}

// splice writes the value into the text itself, where that is easy: into a list in
// brackets, or at the end of a document that has no such list.
function splice(source: string, document: Document.Parsed, list: ListName, kind: keyof List, value: string): string | null {
  const text = JSON.stringify(value)
  const there = document.getIn([list, kind])
  if (isSeq(there) && there.flow && there.range && there.items.length > 0) {
    const end = source.lastIndexOf(']', there.range[1])
    return end < 0 ? null : source.slice(0, end).trimEnd() + ', ' + text + source.slice(end)
  }
  if (document.get(list) === undefined && isMap(document.contents) && !document.contents.flow) {
    return source.replace(/\n*$/, '\n') + `${list}: {${kind}: [${text}]}\n`
  }
  return null
}

// same is whether a text means what the document would with these values on the list.
function same(text: string, document: Document.Parsed, list: ListName, kind: keyof List, values: string[]): boolean {
  const got = parseDocument(text)
  if (got.errors.length > 0) return false
  const want = document.clone() as Document
  want.setIn([list, kind], values)
  return JSON.stringify(got.toJS()) === JSON.stringify(want.toJS())
}
