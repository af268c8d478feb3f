// reachable lets people scroll a part sideways with the keyboard, while it is wider than its place.
export function reachable(part: HTMLElement): () => void {
  const mark = () => {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0
    else part.removeAttribute('tabindex')
  }
  const resized = new ResizeObserver(mark)
  for (const each of [part, ...part.children]) resized.observe(each)
  return () => resized.disconnect()
}
