import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lineOf, outcomes } from '../src/outcomes'

// The colours of the page, as they are and as eyes with fewer kinds of cones see them.
const css = readFileSync(join(import.meta.dirname, '../src/app.css'), 'utf8')

type Three = [number, number, number]

function colour(name: string, theme: 'light' | 'dark'): Three {
  const found = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css)
  if (!found) throw new Error(`there is no colour ${name}`)
  const hex = found[theme === 'light' ? 1 : 2]!
  return [1, 3, 5].map((i) => {
    const c = parseInt(hex.slice(i, i + 2), 16) / 255
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  }) as Three
}

// G. Machado, M. Oliveira, L. Fernandes: A Physiologically-based Model for Simulation of
// Color Vision Deficiency, 2009; severity 1, on linear values.
const eyes: Record<string, Three[]> = {
  'all cones': [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}

const dot = (a: Three, b: Three) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
const seen = (c: Three, eye: string) => eyes[eye]!.map((row) => Math.min(1, Math.max(0, dot(row, c)))) as Three

// oklab is a space in which a distance is about what people see; 0.02 is just noticeable.
function oklab(c: Three): Three {
  const [l, m, s] = ([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]] as Three[]).map((row) => Math.cbrt(dot(row, c))) as Three
  return ([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]] as Three[]).map((row) => dot(row, [l, m, s])) as Three
}
const apart = (a: Three, b: Three) => Math.hypot(...oklab(a).map((v, i) => v - oklab(b)[i]!))

function contrast(a: Three, b: Three): number {
  const [dark, light] = [a, b].map((c) => dot(c, [0.2126, 0.7152, 0.0722])).sort((x, y) => x - y)
  return (light! + 0.05) / (dark! + 0.05)
}

// Outcomes of one colour differ in their patterns.
const sets = { outcomes: [...new Set(outcomes.map((o) => lineOf(o).color))], series: ['series-1', 'series-2', 'series-3', 'series-4', 'series-5', 'series-rest'], lanes: ['allowed', 'delayed', 'denied', 'shadow'] }

describe.each(['light', 'dark'] as const)('by %s', (theme) => {
  describe.each(Object.entries(sets))('the %s', (_, names) => {
    it.each(Object.keys(eyes))('are told apart with %s', (eye) => {
      const near: string[] = []
      for (const [i, a] of names.entries()) {
        for (const b of names.slice(0, i)) {
          const distance = apart(seen(colour(a, theme), eye), seen(colour(b, theme), eye))
          if (distance < 0.1) near.push(`${a} and ${b}: ${distance.toFixed(3)}`)
        }
      }
      expect(near).toEqual([])
    })
    it('stand out from the card', () => {
      for (const name of names) expect([name, contrast(colour(name, theme), colour('card', theme)) > 2.75]).toEqual([name, true])
    })
  })
  it('words can be read', () => {
    const pairs = [
      ['denied', 'card'], ['denied', 'bad-back'], ['allowed', 'card'], ['allowed', 'good-back'], ['shadow', 'raised'], ['shadow', 'card'], ['caution', 'warn-back'],
      ['soft', 'card'], ['soft', 'page'], ['soft', 'raised'], ['soft', 'warn-back'], ['soft', 'good-back'], ['soft', 'bad-back'], ['accent', 'card'], ['accent', 'page'], ['accent', 'raised'], ['on-accent', 'accent'], ['ink', 'bad-back'],
    ] as const
    for (const [front, back] of pairs) {
      expect([front, back, contrast(colour(front, theme), colour(back, theme)) >= 4.5]).toEqual([front, back, true])
    }
  })
})

it('no two outcomes have the same pattern', () => {
  const patterns = outcomes.map((o) => lineOf(o).pattern)
  expect(new Set(patterns).size).toBe(outcomes.length)
})
