// A log with times, as people paste it, made into one that weir simulate --log reads.

export interface Pasted {
  log: string // '' if there is no time in it
  requests: number
  skipped: number // lines without a time
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

// timeOf finds the time of a line, in microseconds: RFC 3339, the combined log of web
// servers, Unix seconds, or seconds since the beginning.
export function timeOf(line: string): number | null {
  let found = /(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6})\d*)?\s?(Z|[+-]\d\d:?\d\d)?/.exec(line)
  if (found) {
    const [, year, month, day, hour, minute, second, fraction, zone] = found
    return micros(Date.UTC(+year!, +month! - 1, +day!, +hour!, +minute!, +second!), fraction, zone)
  }
  found = /(\d\d)\/([A-Za-z]{3})\/(\d{4}):(\d\d):(\d\d):(\d\d)\s?([+-]\d{4})?/.exec(line)
  if (found) {
    const [, day, month, year, hour, minute, second, zone] = found
    const index = months.indexOf(month!.toLowerCase())
    return index < 0 ? null : micros(Date.UTC(+year!, index, +day!, +hour!, +minute!, +second!), undefined, zone)
  }
  found = /(?:^|[\s"'[,:=])(\d{1,13})(?:\.(\d{1,6})\d*)?s?(?=$|[\s"'\],}])/.exec(line)
  if (!found) return null
  const whole = Number(found[1])
  // More than 11 digits are milliseconds since the epoch.
  return found[1]!.length > 11 ? whole * 1000 : whole * 1_000_000 + fractionOf(found[2])
}

function fractionOf(digits = ''): number {
  return Number(digits.padEnd(6, '0').slice(0, 6))
}

function micros(ms: number, fraction?: string, zone = 'Z'): number {
  const offset = /([+-])(\d\d):?(\d\d)/.exec(zone)
  const away = offset ? (offset[1] === '-' ? -1 : 1) * (+offset[2]! * 60 + +offset[3]!) : 0
  return (ms - away * 60_000) * 1000 + fractionOf(fraction)
}

// strict is a line that the server reads as it is: a time, a client, a cost.
const strict = /^\s*(\d{4}-\d\d-\d\dT\S+|\d\d:\d\d:\d\d\S*|\d{9,10}(\.\d+)?|\d+(\.\d+)?(us|ms|s|m|h|d|w))(\s+\S+(\s+\d+)?)?\s*$/

// fromLog leaves a log alone that is one already. Of any other, such as an access log,
// it takes the times.
export function fromLog(text: string): Pasted {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('#'))
  if (lines.every((line) => strict.test(line))) return { log: lines.join('\n'), requests: lines.length, skipped: 0 }
  const times = lines.map(timeOf).filter((at) => at !== null)
  return { log: times.map(instant).join('\n'), requests: times.length, skipped: lines.length - times.length }
}

// instant writes microseconds as Unix seconds, or as the time since the beginning if
// there are too few of them for that.
function instant(us: number): string {
  if (us < 1e14) return us + 'us'
  return `${Math.floor(us / 1_000_000)}.${String(us % 1_000_000).padStart(6, '0')}`
}
