import { describe, expect, it } from 'vitest'
import { board, changed, counters, distribution, hot, lines, shownNames, found } from '../src/asked'
import { link, placeOf } from '../src/route.svelte'

const query = (text: string) => new URLSearchParams(text)

describe('what the address asks for', () => {
  it('is nothing at first', () => {
    expect([counters(query('')), board(query('')), hot(query(''))]).toEqual([null, null, null])
  })
  it('are counters, with commas and all', () => {
    expect(counters(query('name=a%2Cb&name=c&window=day&zone=Asia/Shanghai&board=x'))).toEqual({
      path: '/v1/counters', query: { name: ['a,b', 'c'], window: 'day', zone: 'Asia/Shanghai' },
    })
  })
  it('are distinct counters', () => {
    expect(counters(query('name=users&window=month&distinct=true'))?.query).toEqual({ name: ['users'], window: 'month', distinct: 'true' })
  })
  it('is a bounded number of counters', () => {
    const many = query(Array.from({ length: 999 }, (_, i) => `name=n${i}`).join('&'))
    expect(counters(many)?.query['name']).toHaveLength(shownNames)
  })
  it('is a distribution', () => {
    expect(distribution(query('name=a&window=day'))).toBeNull()
    expect(distribution(query('dist=ms&dist_window=minute&window=day'))).toEqual({ path: '/v1/distributions', query: { name: 'ms', window: 'minute' } })
  })
  it('is a board', () => {
    expect(board(query('board=week&board_window=day&board_ago=1&board_zone=UTC&window=hour'))?.query).toEqual({ board: 'week', window: 'day', ago: '1', zone: 'UTC', n: '20' })
  })
  it('is a sliding board, which has no other window', () => {
    expect(board(query('board=b&board_window=day&board_ago=1&board_sliding_s=60'))?.query).toEqual({ board: 'b', sliding_s: '60', n: '20' })
  })
  it('is a hot list once all is said that it needs', () => {
    expect(hot(query('hot=goods&hot_window_s=60'))).toBeNull()
    expect(hot(query('hot=goods&hot_window_s=60&hot_threshold=5'))).toEqual({ path: '/v1/hot', query: { list: 'goods', window_s: '60', threshold: '5', n: '20' } })
  })
})

describe('the address', () => {
  it('has a field replaced, and no other', () => {
    expect(changed(query('name=a&name=b&zone=UTC'), 'name', ['c', '', 'd']).toString()).toBe('zone=UTC&name=c&name=d')
    expect(changed(query('name=a&zone=UTC'), 'zone', ['']).toString()).toBe('name=a')
  })
  it('keeps whatever bytes a name has', () => {
    const name = 'a?b&c=d#e/f%é\u202e'
    const hash = link('counters') + '?' + changed(query(''), 'name', [name]).toString()
    const place = placeOf(hash)
    expect([place.page, place.query.getAll('name')]).toEqual(['counters', [name]])
  })
})

it('names stand one a line, each once', () => {
  expect(lines(' a \n\nb,c\na\n')).toEqual(['a', 'b,c'])
  expect(lines(Array.from({ length: 999 }, (_, i) => i).join('\n'))).toHaveLength(shownNames)
})

describe('what is found in the list of names', () => {
  const shown = (query: string, one: Parameters<typeof found>[1]) => found(new URLSearchParams(query), one).toString()
  it('is asked for beside what is shown', () => {
    expect(shown('board=b', { kind: 'counter', name: 'views', window: 'day', zone: 'Asia/Shanghai', group: 'g' })).toBe('board=b&window=day&group=g&zone=Asia%2FShanghai&name=views')
    expect(shown('', { kind: 'distinct', name: 'users' })).toBe('distinct=true&name=users')
    expect(shown('dist_group=old', { kind: 'distribution', name: 'ms', window: 'hour' })).toBe('dist=ms&dist_window=hour')
    expect(shown('board_ago=2&board_sliding_s=5', { kind: 'board', name: 'b', window: 'ever' })).toBe('board=b')
    expect(shown('', { kind: 'board', name: 'b', sliding_s: 60 })).toBe('board=b&board_sliding_s=60')
    expect(shown('', { kind: 'hot', name: 'h', sliding_s: 60, threshold: 3, cool: 3 })).toBe('hot=h&hot_window_s=60&hot_threshold=3')
    expect(shown('', { kind: 'hot', name: 'h', sliding_s: 60, threshold: 3, cool: 2 })).toBe('hot=h&hot_window_s=60&hot_threshold=3&hot_cool=2')
  })
  it('joins counters that are asked for in the same way, once', () => {
    expect(shown('name=a&name=b', { kind: 'counter', name: 'a' })).toBe('name=b&name=a')
    expect(shown('name=a&window=day', { kind: 'counter', name: 'b' })).toBe('name=b')
  })
})
