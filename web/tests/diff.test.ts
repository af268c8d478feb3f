import { describe, expect, it } from 'vitest'
import { diff, fold, type DiffLine } from '../src/diff'

const short = (lines: DiffLine[]) => lines.map((l) => ({ same: ' ', added: '+', removed: '-', gap: '~' })[l.kind] + l.text)

// apply makes the second text of the first and the difference.
const apply = (lines: DiffLine[], side: 'left' | 'right') =>
  lines.filter((l) => l.kind === 'same' || l.kind === (side === 'left' ? 'removed' : 'added')).map((l) => l.text)

describe('diff', () => {
  it('shows what changed and where', () => {
    const lines = diff('rules:\n  - id: a\n    limit: 1/1s\n', 'rules:\n  - id: a\n    limit: 2/1s\n    burst: 3\n')
    expect(short(lines)).toEqual([' rules:', '   - id: a', '-    limit: 1/1s', '+    limit: 2/1s', '+    burst: 3'])
    expect(lines.map((l) => [l.left, l.right])).toEqual([[1, 1], [2, 2], [3, 0], [0, 3], [0, 4]])
  })

  it.each([
    ['', ''], ['a', ''], ['', 'a'], ['a\nb\nc', 'a\nb\nc'], ['a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc'], ['x\ny', 'y\nx'],
  ])('of %j and %j gives back both', (before, after) => {
    const lines = diff(before, after)
    expect(apply(lines, 'left')).toEqual(before === '' ? [] : before.split('\n'))
    expect(apply(lines, 'right')).toEqual(after === '' ? [] : after.split('\n'))
  })

  it('changes as few lines as can be', () => {
    const lines = diff('a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc')
    expect(lines.filter((l) => l.kind !== 'same')).toHaveLength(5)
  })

  it('gives back random texts', () => {
    let seed = 7
    const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
    for (let i = 0; i < 200; i++) {
      const text = () => Array.from({ length: random(30) }, () => 'abc'[random(3)]).join('\n')
      const [before, after] = [text(), text()]
      const lines = diff(before, after)
      expect(apply(lines, 'left').join('\n')).toBe(before)
      expect(apply(lines, 'right').join('\n')).toBe(after)
    }
  })

  it('does not take forever over texts that have nothing in common', () => {
    const text = (mark: string) => Array.from({ length: 20_000 }, (_, i) => mark + i).join('\n')
    const began = performance.now()
    expect(diff(text('a'), text('b'))).toHaveLength(40_000)
    expect(performance.now() - began).toBeLessThan(20_000)
  })
})

describe('fold', () => {
  it('leaves out what is far from a change', () => {
    const before = Array.from({ length: 20 }, (_, i) => 'line ' + i)
    const after = [...before]
    after[10] = 'new'
    expect(short(fold(diff(before.join('\n'), after.join('\n')), 1))).toEqual(['~9', ' line 9', '-line 10', '+new', ' line 11', '~8'])
  })
  it('leaves out everything if nothing changed', () => {
    expect(short(fold(diff('a\nb', 'a\nb')))).toEqual(['~2'])
  })
})
