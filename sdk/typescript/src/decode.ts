// Fields is how to read an object that weir sends: by the name that it has there.
export type Fields = { [wire: string]: { name: string; of: 'string' | 'boolean' | 'number' | 'decimal' | 'time' | Fields | [Fields]; required: boolean } }

const nothing = { string: '', boolean: false, number: 0, decimal: 0, time: undefined }

// decode reads an object. It ignores fields that it does not know, because a newer weir may send
// more, and fails on any other surprise.
export function decode<T>(fields: Fields, from: unknown): T {
  if (typeof from !== 'object' || from === null || Array.isArray(from)) {
    throw new Error('the answer is not an object')
  }
  const to: Record<string, unknown> = {}
  for (const [wire, { name, of, required }] of Object.entries(fields)) {
    const value = (from as Record<string, unknown>)[wire]
    if (value !== undefined && value !== null) {
      to[name] = read(wire, of, value)
    } else if (required) {
      throw new Error(`the answer has no ${wire}`)
    } else {
      const empty = Array.isArray(of) ? [] : typeof of === 'string' ? nothing[of] : undefined
      if (empty !== undefined) to[name] = empty
    }
  }
  return to as T
}

function read(wire: string, of: Fields[string]['of'], value: unknown): unknown {
  if (Array.isArray(of)) {
    if (Array.isArray(value)) return value.map((each) => decode(of[0], each))
  } else if (typeof of === 'object') {
    return decode(of, value)
  } else if (of === 'time') {
    const time = new Date(typeof value === 'string' ? value : NaN)
    if (!Number.isNaN(time.getTime())) return time
  } else if (of === 'decimal') {
    if (typeof value === 'number') return value
  } else if (typeof value === of && (of !== 'number' || Number.isSafeInteger(value))) {
    return value
  }
  throw new Error(`${wire} in the answer has the wrong type`)
}

// encode writes an object with the names that weir reads: api_key for apiKey.
export function encode(from: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(from).map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => '_' + letter.toLowerCase()), value]),
  )
}
