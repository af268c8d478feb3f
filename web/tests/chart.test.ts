import { describe, expect, it } from 'vitest'
import { alone, bars, enough, lastEnded, logRange, logSplits, present, smoothed, stack, withGaps } from '../src/chart'

describe('gaps', () => {
  it('are points without a value', () => {
    expect(withGaps([[1, 2, 5, 6, 9], [1, 1, 2, 2, 3]], 1)).toEqual([[1, 2, 3, 5, 6, 7, 9], [1, 1, null, 2, 2, null, 3]])
  })
  it('are none where there is a point for every step', () => {
    const data = [[10, 20, 30], [0, 1, 2]]
    expect(withGaps(data, 10)).toBe(data)
    expect(withGaps([[], []], 1)).toEqual([[], []])
  })
})

describe('the values beside a chart', () => {
  it('are of the last step that is over', () => {
    expect(lastEnded([0, 300, 600], 300, 700)).toBe(1)
    expect(lastEnded([0, 300, 600], 300, 900)).toBe(2)
    expect(lastEnded([600], 300, 700)).toBe(0)
    expect(lastEnded([], 300, 700)).toBe(-1)
  })
})

describe('a stack', () => {
  it('ends with the total', () => expect(stack([[1, 2], [10, 0], [100, 5]])).toEqual([[1, 2], [11, 2], [111, 7]]))
  it('has a gap where any row has one', () => expect(stack([[1, null, 1], [1, 1, null]])).toEqual([[1, null, 1], [2, null, null]]))
  it('may be empty', () => expect(stack([])).toEqual([]))
  it('leaves out what never happened', () => {
    expect(present([[0, 0], [0, 1], [null, 0], [2, null]])).toEqual([1, 3])
    expect(present([[0, 0], [null, 0]])).toEqual([0])
    expect(present([])).toEqual([])
  })
})

describe('a share', () => {
  it('is not smoothed where there is enough', () => {
    expect(smoothed([10, 200], [enough, 400])).toEqual({ values: [0.1, 0.5], widest: 1 })
  })
  it('takes in what was before, until it is enough', () => {
    const { values, widest } = smoothed([0, 0, 1, 0], [60, 60, 1, 0])
    expect(values).toEqual([0, 0, 1 / 121, 1 / 121])
    expect(widest).toBe(4)
  })
  it('does not jump by one request of two', () => {
    const all = Array.from({ length: 60 }, () => 2)
    const { values } = smoothed(all.map((_, i) => (i === 40 ? 1 : 0)), all)
    expect(Math.max(...(values as number[]))).toBeLessThan(0.02)
  })
  it('is nothing where nobody asked, and does not reach over a gap', () => {
    expect(smoothed([0, 5, 0, 0], [0, 10, null, 0]).values).toEqual([null, 0.5, null, null])
  })
  it('does not remember for ever', () => {
    const whole = [10, ...Array.from({ length: 40 }, () => 0)]
    expect(smoothed(whole, whole).values.findLastIndex((v) => v !== null)).toBe(2)
  })
  it('is nothing where nobody asked for three steps, and begins again with what is known', () => {
    const { values, widest } = smoothed([5, 0, 0, 0, 0, 0], [10, 0, 0, 0, 0, 10])
    expect(values).toEqual([0.5, 0.5, 0.5, null, null, 0.25])
    expect(widest).toBe(6)
  })
  it('is drawn through steps without a request, if they are few', () => {
    const whole = Array.from({ length: 40 }, (_, i) => (i % 3 === 0 ? 1 : 0))
    expect(smoothed(whole.map(() => 0), whole).values.every((v) => v === 0)).toBe(true)
  })
})

describe('bars', () => {
  it('are one unit wide, if there are few units', () => {
    expect(bars([{ from: 1, up_to: 1, count: 4 }, { from: 3, up_to: 3, count: 2 }], 3)).toEqual({ width: 1, counts: [0, 4, 0, 2] })
  })
  it('spread a wide slot over its units', () => {
    expect(bars([{ from: 2, up_to: 5, count: 8 }], 5).counts).toEqual([0, 0, 2, 2, 2, 2])
  })
  it('are of one width, and have all that was counted', () => {
    const slots = [{ from: 0, up_to: 0, count: 7 }, { from: 80, up_to: 87, count: 16 }, { from: 960, up_to: 1000, count: 41 }]
    const { width, counts } = bars(slots, 1000)
    expect([width, counts.length]).toEqual([32, 32])
    expect(counts.reduce((sum, n) => sum + n)).toBeCloseTo(64)
    expect([counts[0], counts[2], counts[30], counts[31]].map((n) => Math.round(n!))).toEqual([7, 16, 32, 9])
  })
})

it('a value with none beside it is drawn as a point', () => expect(alone([1, null, 2, 3, null, 4])).toEqual([0, 5]))

describe('a logarithmic axis', () => {
  it.each([[3, 700, 2, 1000], [10, 10, 10, 20], [0.4, 0.6, 0.2, 1], [999, 1000, 500, 2000]])('around %s to %s', (min, max, from, to) => {
    expect(logRange(min, max)).toEqual([from, to])
  })
  it('stands without values', () => expect([logRange(0, 0), logRange(NaN, NaN)]).toEqual([[1, 10], [1, 10]]))
  it('has round numbers, and not too many', () => {
    expect(logSplits(2, 100)).toEqual([2, 5, 10, 20, 50, 100])
    expect(logSplits(1, 100_000)).toEqual([1, 10, 100, 1000, 10_000, 100_000])
  })
})
