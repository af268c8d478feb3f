import { svelte } from '@sveltejs/vite-plugin-svelte'
import { readdirSync, writeFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

// keep holds the place of dist in the repository, which the build would clear away.
const keep = { name: 'keep', closeBundle: () => writeFileSync('dist/.keep', '') }

// once writes the names of words into the bundle once, instead of once for each language.
const once = {
  name: 'once',
  apply: 'build' as const,
  async transform(code: string, id: string) {
    if (!id.endsWith('/words/zh.ts')) return
    const { en } = await import('./src/words/en')
    const { zh } = await import('./src/words/zh')
    const values = Object.keys(en).map((word) => zh[word as keyof typeof zh])
    return `import { en } from './en'\nconst values = ${JSON.stringify(values)}\nexport const zh = Object.fromEntries(Object.keys(en).map((word, i) => [word, values[i]]))\n`
  },
}

// lean leaves out of the charts what no page uses: bars, curves, tables that are joined, scatter
// plots, two kinds of scale, and a legend, since the pages write their own. A version that says
// it otherwise is built whole, and the test of the size tells.
const unused: [RegExp, string][] = [
  [/\(paths\.(bars|spline) *= \w+\);|uPlot\.join = join;|uPlot\.rangeAsinh = rangeAsinh;/g, ''],
  [/\bmode == 2\b|\b(sc\.)?distr == (4|100)\b/g, 'false'],
  [/const showLegend = legend\.show;/, 'const showLegend = false;'],
]
const lean = {
  name: 'lean',
  apply: 'build' as const,
  transform(code: string, id: string) {
    if (!id.endsWith('/uPlot.esm.js')) return
    return unused.reduce((text, [what, instead]) => text.replace(what, instead), code)
  },
}

// short names the styles of a component by a number instead of a hash.
const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.svelte')).sort()
const short = ({ filename }: { filename: string }) => 's' + files.findIndex((name) => filename.endsWith('/' + name)).toString(36)

export default defineConfig({
  plugins: [once, lean, svelte({ compilerOptions: { cssHash: short } }), keep],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the policy of the page knows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/metrics': 'http://127.0.0.1:8080' } },
  test: { include: ['tests/**/*.test.ts'] },
})
