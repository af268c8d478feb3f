import { describe, expect, it } from 'vitest'
import { board, changed, counters, distribution, hot, lines, shownNames } from '../src/asked'
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
