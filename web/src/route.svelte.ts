// Where on the page one is: the part of the address behind the #.

export interface Place {
  page: string
  rest: string[] // what follows, such as the id of a rule
  query: URLSearchParams
}

export function placeOf(hash: string): Place {
  const [path = '', ...search] = hash.replace(/^#\/?/, '').split('?')
  const [page = '', ...rest] = path.split('/').map((part) => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part
    }
  })
  return { page: page || 'overview', rest, query: new URLSearchParams(search.join('?')) }
}

export const route = $state<{ place: Place }>({ place: placeOf(globalThis.location?.hash ?? '') })

let mayLeave: () => boolean = () => true
let current = globalThis.location?.hash ?? ''

// guard asks before what is not saved is left; it returns how to stop asking.
export function guard(ask: () => boolean): () => void {
  mayLeave = ask
  const warn = (event: BeforeUnloadEvent) => {
    if (!ask()) event.preventDefault()
  }
  addEventListener('beforeunload', warn)
  return () => {
    mayLeave = () => true
    removeEventListener('beforeunload', warn)
  }
}

export function follow(confirmLeave: () => boolean): void {
  addEventListener('hashchange', () => {
    if (location.hash === current) return
    if (!mayLeave() && !confirmLeave()) {
      history.replaceState(null, '', current || '#/')
      return
    }
    current = location.hash
    route.place = placeOf(current)
  })
}

// keep writes what was asked for into the address, so that it can be bookmarked. Nobody
// goes anywhere by it.
export function keep(query: URLSearchParams): void {
  current = ask(query, route.place.page, ...route.place.rest)
  history.replaceState(null, '', current)
  route.place = placeOf(current)
}

// visit goes to the same page with another question, so that the back button leads here again.
export function visit(query: URLSearchParams): void {
  location.hash = ask(query, route.place.page, ...route.place.rest)
}

export function go(...parts: string[]): void {
  location.hash = '#/' + parts.map(encodeURIComponent).join('/')
}

export const link = (...parts: string[]): string => '#/' + parts.map(encodeURIComponent).join('/')

// ask is a link to a page with a question.
export function ask(query: URLSearchParams | Record<string, string>, ...parts: string[]): string {
  const search = new URLSearchParams(query).toString()
  return link(...parts) + (search ? '?' + search : '')
}
