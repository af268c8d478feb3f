// A long list of which only the part near the screen is drawn.

export const chunk = 40 // rows

// chunks cuts a list into parts. A part knows its place, so that it can be told from others.
export function chunks<T>(all: T[], size = chunk): { at: number; items: T[] }[] {
  const parts: { at: number; items: T[] }[] = []
  for (let at = 0; at < all.length; at += size) parts.push({ at, items: all.slice(at, at + size) })
  return parts
}

// near watches an element, and says when it comes near the screen and when it leaves it, with
// the height that it had.
export function near(tell: (close: boolean, height: number) => void): (element: HTMLElement) => () => void {
  return (element) => {
    const watch = new IntersectionObserver(
      (seen) => tell(seen.at(-1)!.isIntersecting, element.getBoundingClientRect().height),
      { rootMargin: '800px 0px' },
    )
    watch.observe(element)
    return () => watch.disconnect()
  }
}
