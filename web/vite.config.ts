import { svelte } from '@sveltejs/vite-plugin-svelte'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

// brief gives the words that the pages always name in full a short name in the bundle, which
// follows from their order. Those that are named by a template, such as `mode.${name}`, keep
// theirs, and come first. Each language is one text with a line for each word.
const source = resolve('src') + '/'
const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => /\.(svelte|ts)$/.test(name))
const templates = sources
  .flatMap((name) => [...readFileSync('src/' + name, 'utf8').matchAll(/`(\w+\.[^`]*\$\{[^`]*)`/g)])
  .map(([, text]) => new RegExp('^' + text!.replaceAll('.', '\\.').replace(/\$\{[^}]*\}/g, '\\w+') + '$'))
const isNamed = (word: string) => templates.some((template) => template.test(word))
const brief = {
  name: 'brief',
  apply: 'build' as const,
  enforce: 'post' as const,
  async transform(code: string, id: string) {
    if (!id.startsWith(source) || id.includes('css')) return
    const { en } = await import('./src/words/en')
    const { zh } = await import('./src/words/zh')
    const words = Object.keys(en) as (keyof typeof en)[]
    const named = words.filter(isNamed)
    const order = [...named, ...words.filter((word) => !isNamed(word))]
    const lines = (of: typeof en | typeof zh) => `${JSON.stringify(order.map((word) => of[word]).join('\n'))}.split('\\n')`
    if (id.endsWith('/words/en.ts')) {
      return `const named = ${JSON.stringify(named.join(' '))}.split(' ')
        export const en = Object.fromEntries(${lines(en)}.map((text, i) => [named[i] ?? 'w' + i.toString(36), text]))`
    }
    if (id.endsWith('/words/zh.ts')) {
      return `import { en } from './en'
        const texts = ${lines(zh)}
        export const zh = Object.fromEntries(Object.keys(en).map((word, i) => [word, texts[i]]))`
    }
    return code.replace(/(["'])(\w+(?:\.\w+)+)\1/g, (whole, _, word: string) =>
      word in en && !isNamed(word) ? `'w${order.indexOf(word as keyof typeof en).toString(36)}'` : whole)
  },
}

// lean leaves out of libraries what no page uses, and what is written otherwise in a later
// version stays in: then the test of the size tells. Of the charts, that is bars, curves, tables
// that are joined, scatter plots, two kinds of scale, and ranges and a legend, since the pages
// have their own; of Svelte, pages that a server has drawn before, and its older and its coming
// ways.
const unused: Record<string, [RegExp, string][]> = {
  'uPlot.esm.js': [
    [/^\t?uPlot\.(?!paths)\w+ *= \w+;|\(paths\.(bars|spline) *= \w+\);/gm, ''],
    [/\bmode == 2\b|\bms == 1\b|\b(sc\.|scale\.)?distr == (2|4|100)\b/g, 'false'],
    [/\bmode == 1\b/g, 'true'],
    [/\bself\.((add|del)(Series|Band)|setBand) = \w+;/g, ''],
    [/const showLegend = legend\.show;/, 'const showLegend = false;'],
    [/^function (range(Log|Asinh|Num)|_rangeNum|logAxisSplits|log(2|10)AxisValsFilt)\([^]*?^\}/gm, 'const $1 = 0;'],
    [/const _timeAxisStamps = \[[^]*?\n\t\];/, 'const _timeAxisStamps = 0;'],
    [/\b_time(AxisVals|SeriesVal) +=.*;/g, '_time$1 = 0;'],
    [/^const (days3|months3) = .*/gm, 'const $1 = 0;'],
    [/isTime \? \(\s*(\/\/.*\s*)?is(Arr|Str)\([^]*?\) : (?=.v \|\| num)/g, ''],
  ],
  'uPlot.min.css': [[/\.u-(legend|inline|series|title)[^{}]*\{[^}]*\}/g, '']],
  'client/dom/hydration.js': [
    [/export let hydrating = false/, 'export const hydrating = false'],
    [/hydrating = value;/, ''],
  ],
  'client/reactivity/async.js': [
    [/var pending = .*;/, ''],
    [/if \(async\.length === 0 && pending\.length === 0\) \{[^]*?^\}/m, 'fn(deriveds);\n}'],
  ],
  'internal/flags/index.js': [
    [/export let (\w+) = false/g, 'export const $1 = false'],
    [/^\t\w+ = (true|false);/gm, ''],
  ],
}
const lean = {
  name: 'lean',
  apply: 'build' as const,
  transform(code: string, id: string) {
    const file = Object.keys(unused).find((name) => id.endsWith('/' + name))
    if (file) return unused[file]!.reduce((text, [what, instead]) => text.replace(what, instead), code)
  },
}

// short names the styles of a component by a number instead of a hash.
const files = sources.filter((name) => name.endsWith('.svelte')).sort()
const short = ({ filename }: { filename: string }) => 's' + files.findIndex((name) => filename.endsWith('/' + name)).toString(36)

export default defineConfig({
  plugins: [brief, lean, svelte({ compilerOptions: { cssHash: short } })],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the policy of the page knows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Names without a hash: dist is in the repository, where a changed file costs less than a new one.
    rolldownOptions: { output: { entryFileNames: 'assets/[name].js', assetFileNames: 'assets/[name][extname]' } },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/metrics': 'http://127.0.0.1:8080' } },
  test: { include: ['tests/**/*.test.ts'], testTimeout: 180_000 }, // a busy machine is slow
})
