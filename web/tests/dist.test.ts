import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

// contents are the files of a directory, by name.
function contents(dir: string): Map<string, string> {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(names.map((entry) => join(entry.parentPath, entry.name)).sort().map((path) => [path.slice(dir.length + 1), readFileSync(path, 'latin1')]))
}

// In another directory, so that a build that depends on where it happens fails as well.
it('is in the repository as it is built', { timeout: 0 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-dashboard-'))
  try {
    for (const name of readdirSync('.')) {
      if (name !== 'dist' && name !== 'node_modules' && name !== 'tests') cpSync(name, join(dir, name), { recursive: true })
    }
    symlinkSync(realpathSync('node_modules'), join(dir, 'node_modules'))
    const env = { ...process.env, NODE_ENV: 'production' }
    execFileSync(process.execPath, ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'error'], { cwd: dir, env, stdio: 'pipe' })
    const built = contents(join(dir, 'dist'))
    const committed = contents('dist')
    expect([...committed.keys()], 'web/dist has other files than a build; run make web and commit it').toEqual([...built.keys()])
    for (const [name, text] of built) {
      expect(committed.get(name) === text, `web/dist/${name} is not what web/src builds; run make web and commit it`).toBe(true)
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})
