// A readable difference between two texts, by lines.

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'gap'
  text: string // of a gap: how many lines are left out
  left: number // the number of the line in the older text; 0 if it has none
  right: number
}

// maxEdits is how different texts may be until everything counts as changed: the work
// grows with the square of it.
const maxEdits = 1000

// diff tells how one text becomes another, with as few lines changed as can be (Myers).
export function diff(before: string, after: string): DiffLine[] {
  const a = lines(before)
  const b = lines(after)
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const kinds: DiffLine['kind'][] = [
    ...Array<DiffLine['kind']>(head).fill('same'),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...Array<DiffLine['kind']>(tail).fill('same'),
  ]
  let left = 0
  let right = 0
  return kinds.map((kind) => {
    if (kind !== 'added') left++
    if (kind !== 'removed') right++
    const text = kind === 'removed' ? a[left - 1]! : b[right - 1]!
    return { kind, text, left: kind === 'added' ? 0 : left, right: kind === 'removed' ? 0 : right }
  })
}

function lines(text: string): string[] {
  const all = text.split('\n')
  if (all[all.length - 1] === '') all.pop()
  return all
}

// middle finds the shortest way from a to b through the grid of their lines.
function middle(a: string[], b: string[]): DiffLine['kind'][] {
  const most = Math.min(a.length + b.length, maxEdits)
  const trace: Map<number, number>[] = []
  let furthest = new Map<number, number>([[1, 0]])
  for (let edits = 0; edits <= most; edits++) {
    trace.push(new Map(furthest))
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1))
      let x = down ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0) + 1
      let y = x - k
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++
        y++
      }
      furthest.set(k, x)
      if (x >= a.length && y >= b.length) return back(trace, a.length, b.length)
    }
  }
  return [...Array<DiffLine['kind']>(a.length).fill('removed'), ...Array<DiffLine['kind']>(b.length).fill('added')]
}

function back(trace: Map<number, number>[], x: number, y: number): DiffLine['kind'][] {
  const kinds: DiffLine['kind'][] = []
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits]!
    const k = x - y
    const down = k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1))
    const before = down ? k + 1 : k - 1
    const startX = edits === 0 ? 0 : furthest.get(before)!
    const startY = edits === 0 ? 0 : startX - before
    while (x > startX && y > startY && x > 0 && y > 0) {
      kinds.push('same')
      x--
      y--
    }
    if (edits > 0) {
      kinds.push(down ? 'added' : 'removed')
      x = startX
      y = startY
    }
  }
  return kinds.reverse()
}

// fold leaves out what is far from any change.
export function fold(all: DiffLine[], context = 3): DiffLine[] {
  const near = new Uint8Array(all.length)
  all.forEach((line, i) => {
    if (line.kind === 'same') return
    near.fill(1, Math.max(0, i - context), Math.min(all.length, i + context + 1))
  })
  const folded: DiffLine[] = []
  for (let i = 0; i < all.length; i++) {
    if (near[i]) {
      folded.push(all[i]!)
      continue
    }
    let end = i
    while (end < all.length && !near[end]) end++
    folded.push({ kind: 'gap', text: String(end - i), left: 0, right: 0 })
    i = end - 1
  }
  return folded
}
