import { svelte } from '@sveltejs/vite-plugin-svelte'
import { writeFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

// keep holds the place of dist in the repository, which the build would clear away.
const keep = { name: 'keep', closeBundle: () => writeFileSync('dist/.keep', '') }

export default defineConfig({
  plugins: [svelte(), keep],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the policy of the page knows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/metrics': 'http://127.0.0.1:8080' } },
  test: { include: ['tests/**/*.test.ts'] },
})
