// Clients as the API writes them: user:alice, ip:203.0.113.7, and several with | between.

// escape makes a value safe to stand in a key.
export function escape(value: string): string {
  return value.replace(/[\\|]/g, '\\$&')
}

export interface Part {
  kind: string // ip, user, api_key, global, tier, host, method, route, or header:X and the like
  value: string // as it is in clear, or a hash
}

// parts takes a key apart. It is strict about nothing: the server is.
export function parts(key: string): Part[] {
  const pieces: string[] = []
  let piece = ''
  for (let i = 0; i < key.length; i++) {
    const c = key[i]!
    if (c === '\\' && (key[i + 1] === '\\' || key[i + 1] === '|')) {
      piece += key[++i]
    } else if (c === '|') {
      pieces.push(piece)
      piece = ''
    } else {
      piece += c
    }
  }
  pieces.push(piece)
  return pieces.map((text) => {
    const named = /^((?:header|cookie|query|attr):[^:]*):([^]*)$/.exec(text) ?? /^([a-z_]+):([^]*)$/.exec(text)
    return named ? { kind: named[1]!, value: named[2]! } : { kind: text, value: '' }
  })
}

// besides are the parts of a key that another one lacks, as people read them.
export function besides(key: string, other: string): string {
  const known = parts(other).map(({ kind }) => kind)
  return parts(key)
    .filter(({ kind }) => !known.includes(kind))
    .map(({ kind, value }) => `${kind} ${value}`)
    .join(' · ')
}

// listed are the parts of a key that the block list can name.
export function listed(key: string): { list: 'ip' | 'user' | 'api_key'; value: string }[] {
  return parts(key).flatMap(({ kind, value }) =>
    value !== '' && (kind === 'ip' || kind === 'user' || kind === 'api_key') ? [{ list: kind, value }] : [],
  )
}

// hashAPIKey is what stands for an API key everywhere, so that the key itself is in no
// address and no log. Browsers hash on pages that came safely only; null elsewhere.
export async function hashAPIKey(key: string): Promise<string | null> {
  if (!globalThis.crypto?.subtle) return null
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode('weir:api_key:' + key))
  const hex = Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, '0')).join('')
  return 'sha256:' + hex.slice(0, 32)
}

export const isHash = (text: string): boolean => /^sha256:[0-9a-f]{32}$/.test(text)
