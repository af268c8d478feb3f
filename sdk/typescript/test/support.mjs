// What the tests share: the table of cases, a weir of their own, and servers that misbehave.
import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export const url = process.env.WEIR_URL

// cases is the table, for a client with this name.
export function cases(name) {
  return JSON.parse(readFileSync(process.env.WEIR_CASES, 'utf8').replaceAll('$', name + '-'))
}

export const quiet = { warn() {}, info() {} }

// startWeir starts a weir with rules, and waits until it listens. at is where, to start it again.
export async function startWeir(t, rules, at = '127.0.0.1:0') {
  const dir = mkdtempSync(join(tmpdir(), 'weir-'))
  copyFileSync(rules, join(dir, 'rules.yaml')) // beside which weir keeps their history
  const child = spawn(process.env.WEIR_BINARY, ['serve', '--http', at, '--grpc', 'off'], { cwd: dir, stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = new Promise((done) => child.once('exit', done))
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  t.after(async () => {
    await kill()
    rmSync(dir, { recursive: true })
  })
  for await (const line of createInterface(child.stdout)) {
    const found = /^weir listens on (\S+)/.exec(line)
    if (found) return { url: found[1], host: new URL(found[1]).host, kill }
  }
  throw new Error('weir ended before it listened')
}

// serve starts a server with a handler, until the test ends.
export async function serve(t, handler) {
  const server = createServer(handler)
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${server.address().port}`
}

// until waits until something holds.
export async function until(holds) {
  while (!(await holds())) await new Promise((done) => setTimeout(done, 10))
}
