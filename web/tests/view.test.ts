import { describe, expect, it } from 'vitest'
import { around, boundsOf, pace, queryOf, slots, viewOf, type View } from '../src/view'

const view = (more: Partial<View> = {}): View => ({ range: 'live', span: null, rule: '', key: '', ...more })
const read = (text: string) => viewOf(new URLSearchParams(text))

describe('a view', () => {
  it.each<[string, View]>([
    ['', view()],
    ['range=1h&rule=login', view({ range: 'hour', rule: 'login' })],
    ['range=30d&key=user%3Aa%26b', view({ range: 'month', key: 'user:a&b' })],
    ['range=1d&from=100&to=200&rule=a%2Fb', view({ range: 'day', span: { from: 100, to: 200 }, rule: 'a/b' })],
  ])('is what the address %j says, and is written the same way', (text, want) => {
    expect(read(text)).toEqual(want)
    expect(queryOf(want).toString()).toBe(text)
  })
  it.each(['range=9y', 'from=5', 'from=9&to=5', 'from=x&to=y', 'from=-5&to=9', 'from=1&to=1e99', 'from=Infinity&to=Infinity'])('of %s makes no sense, and is the usual one', (text) => {
    expect(read(text)).toEqual(view())
  })
  it('ends now, or when it says', () => {
    expect(boundsOf(view(), 1000)).toEqual({ from: 700, to: 1000 })
    expect(boundsOf(view({ span: { from: 1, to: 5 } }), 1000)).toEqual({ from: 1, to: 5 })
  })
  it('of what is over is looked at once', () => {
    expect(pace(view({ span: { from: 1, to: 500 } }), 1000)).toBe(0)
    expect(pace(view({ span: { from: 1, to: 990 } }), 1000)).toBe(5000)
    expect([pace(view(), 0), pace(view({ range: 'day' }), 0), pace(view({ range: 'year' }), 0)]).toEqual([1000, 5000, 15_000])
  })
})

describe('a click on a point in time', () => {
  const shown = { from: 1000, to: 2000 }
  it.each([[1500, 1, 1490, 1510], [1005, 1, 1000, 1015], [1999.5, 10, 1899, 2000], [2000, 0.01, 1999, 2001]])('at %s', (t, step, from, to) => {
    expect(around(t, step, shown)).toEqual({ from, to })
  })
})

it('a rule keeps its colour while it is shown', () => {
  const first = slots(new Map(), ['a', 'b', 'c'])
  expect([...first]).toEqual([['a', 0], ['b', 1], ['c', 2]])
  const second = slots(first, ['c', 'd', 'a'])
  expect(Object.fromEntries(second)).toEqual({ c: 2, a: 0, d: 1 })
})
