import { svelte } from '@sveltejs/vite-plugin-svelte'
import { writeFileSync } from 'node:fs'
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

export default defineConfig({
  plugins: [once, svelte(), keep],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the policy of the page knows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/metrics': 'http://127.0.0.1:8080' } },
  test: { include: ['tests/**/*.test.ts'] },
})
