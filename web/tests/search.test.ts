import { expect, it } from 'vitest'
import { find } from '../src/search'

const rules = ['api', 'login', 'api-login', 'search']
const keys = ['user:alice', 'user:alan', 'ip:192.0.2.1']
const names = (text: string) => find(text, rules, keys).map((f) => `${f.kind} ${f.name}`)

it.each<[string, string[]]>([
  ['', []],
  ['  ', []],
  ['log', ['rule login', 'rule api-login']],
  ['API', ['rule api', 'rule api-login']],
  ['al', ['client user:alice', 'client user:alan']],
  ['user:al', ['client user:alice', 'client user:alan', 'lookup user:al']],
  ['user:alice', ['client user:alice']],
  ['192', ['client ip:192.0.2.1']],
  ['user:bob', ['lookup user:bob']],
  ['nothing', []],
])('%j finds', (text, want) => expect(names(text)).toEqual(want))

it('shows a few of many', () => {
  const many = Array.from({ length: 5000 }, (_, i) => `rule-${i}`)
  expect(find('rule', many, [])).toHaveLength(8)
})
