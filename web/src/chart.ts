// What charts show, computed from what is known. Nothing here draws.

export type Row = (number | null)[]

// withGaps puts a point without a value where a run of times has a hole, so that no line is
// drawn over time of which nothing is known. Times come first.
export function withGaps(data: Row[], step: number): Row[] {
  const times = data[0] as number[]
  const holes = times.flatMap((t, i) => (i > 0 && t - times[i - 1]! > 1.5 * step ? [i] : []))
  if (holes.length === 0) return data
  return data.map((row, n) => {
    const next: Row = []
    let from = 0
    for (const hole of holes) {
      next.push(...row.slice(from, hole), n === 0 ? times[hole - 1]! + step : null)
      from = hole
    }
    return [...next, ...row.slice(from)]
  })
}

// present are the places of the rows that have something in them. What never happened is left
// out; if nothing did, the first row says so.
export function present(rows: Row[]): number[] {
  const some = rows.flatMap((row, i) => (row.some((v) => v !== null && v !== 0) ? [i] : []))
  return some.length > 0 || rows.length === 0 ? some : [0]
}

// stack puts each row upon those before it, so that the last one is the total.
export function stack(rows: Row[]): Row[] {
  const sum: Row = (rows[0] ?? []).map(() => 0)
  return rows.map((row) => row.map((v, i) => (sum[i] = v === null || sum[i] === null ? null : sum[i]! + v)))
}

export interface Smoothed {
  values: Row
  widest: number // steps; 1 if nothing was smoothed
}

export const enough = 100 // requests that make a share worth drawing
const widestEver = 30 // steps
export const quiet = 3 // steps without a request that are a gap

// smoothed is a share of requests over time. One of two requests is no half of the traffic:
// where there are few requests, a value takes in those before it, until it stands for enough of
// them. Time of which nothing is known ends the window. A few steps in which nobody asked are a
// gap, as if nothing was known: what was before says nothing of them.
export function smoothed(part: Row, whole: Row): Smoothed {
  let widest = 1
  const values = whole.map((_, at) => {
    if (!whole.slice(Math.max(0, at + 1 - quiet), at + 1).some(Boolean)) return null
    let [some, all, width] = [0, 0, 0]
    for (let i = at; i >= 0 && width < widestEver && all < enough && whole[i] !== null; i--) {
      some += part[i] ?? 0
      all += whole[i] ?? 0
      width++
    }
    if (all === 0) return null
    widest = Math.max(widest, width)
    return some / all
  })
  return { values, widest }
}

export interface Slot {
  from: number // units
  up_to: number
  count: number
}

const mostBars = 32

// bars turns slots of different widths into bars of one width in units, from 0 on: a wide slot
// would look like much that is little. What a slot has is spread over its units.
export function bars(slots: Slot[], end: number): { width: number; counts: number[] } {
  const width = Math.ceil((end + 1) / mostBars)
  const counts = new Array<number>(Math.ceil((end + 1) / width)).fill(0)
  for (const { from, up_to, count } of slots) {
    for (let bar = Math.floor(from / width); bar * width <= up_to && bar < counts.length; bar++) {
      const shared = Math.min(up_to, (bar + 1) * width - 1) - Math.max(from, bar * width) + 1
      counts[bar]! += (count * shared) / (up_to - from + 1)
    }
  }
  return { width, counts }
}

// alone are the places of values with none beside them, which a line would not show.
export function alone(row: Row): number[] {
  return row.flatMap((v, i) => (v !== null && (row[i - 1] ?? null) === null && (row[i + 1] ?? null) === null ? [i] : []))
}

// logRange is a stretch of a logarithmic axis around some values, from one round number to the
// next; and logSplits are the round numbers in it.
const round = [1, 2, 5]
export function logRange(min: number, max: number): [number, number] {
  if (!(min > 0) || !(max > 0)) return [1, 10]
  const from = Math.max(...rounds(min / 10, min).filter((n) => n <= min))
  const to = Math.min(...rounds(max, max * 10).filter((n) => n > max))
  return [from, to]
}
export function logSplits(min: number, max: number): number[] {
  const all = rounds(min, max)
  return all.length <= 7 ? all : all.filter((n) => Number.isInteger(Math.round(Math.log10(n) * 1e9) / 1e9))
}
function rounds(min: number, max: number): number[] {
  const all: number[] = []
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
    all.push(...round.map((n) => Number((n * 10 ** power).toPrecision(1))))
  }
  return all.filter((n) => n >= min * 0.999999 && n <= max * 1.000001)
}

// lastEnded is the last step that is over: the values of one that is not are still growing. It is
// the last one if none is, or if the steps are not known.
export function lastEnded(times: number[], step: number, now: number): number {
  const found = times.findLastIndex((t) => t + step <= now)
  return found < 0 ? times.length - 1 : found
}
