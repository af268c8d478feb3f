// Colours and patterns for a canvas, which knows no CSS variables.

import type { Pattern } from './outcomes'

// colorOf is what a CSS variable is now. A canvas knows no light-dark(); an element that
// wears the colour does.
export function colorOf(host: HTMLElement, name: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(--${name})`
  host.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  return value
}

const side = 8 // pixels of a tile

// strokes are the lines of a tile: from x, y to x, y. They go on in the next one.
const strokes: Record<Exclude<Pattern, 'solid' | 'dots'>, [number, number, number, number][]> = {
  rising: [[-1, 9, 9, -1], [-1, 1, 1, -1], [7, 9, 9, 7]],
  falling: [[-1, -1, 9, 9], [-1, 7, 1, 9], [7, -1, 9, 1]],
  lying: [[0, 4, 8, 4]],
  standing: [[4, 0, 4, 8]],
  crossed: [[-1, 9, 9, -1], [-1, -1, 9, 9]],
  squares: [[0, 4, 8, 4], [4, 0, 4, 8]],
}

// patternOf fills an area so that it differs from others without its colour, too.
export function patternOf(color: string, pattern: Pattern): CanvasPattern | string {
  const scale = globalThis.devicePixelRatio ?? 1
  const tile = document.createElement('canvas')
  tile.width = tile.height = Math.round(side * scale)
  const ctx = tile.getContext('2d')
  if (!ctx) return color
  ctx.scale(tile.width / side, tile.height / side)
  ctx.fillStyle = ctx.strokeStyle = color
  ctx.globalAlpha = pattern === 'solid' ? 0.55 : 0.28
  ctx.fillRect(0, 0, side, side)
  ctx.globalAlpha = 1
  ctx.lineWidth = 1.6
  if (pattern === 'dots') {
    for (const [x, y] of [[2, 2], [6, 6]] as const) {
      ctx.beginPath()
      ctx.arc(x, y, 1.3, 0, 2 * Math.PI)
      ctx.fill()
    }
  } else if (pattern !== 'solid') {
    for (const [x0, y0, x1, y1] of strokes[pattern]) {
      ctx.beginPath()
      ctx.moveTo(x0, y0)
      ctx.lineTo(x1, y1)
      ctx.stroke()
    }
  }
  return ctx.createPattern(tile, 'repeat') ?? color
}
