// reachable lets people reach every column of a table. A narrow page stacks the cells of a row,
// each with the head of its column, which app.css takes from data-label; elsewhere a table that
// is wider than its place can be scrolled with the keyboard.
export function reachable(part: HTMLElement): () => void {
  const mark = () => {
    for (const table of part.querySelectorAll('table')) {
      const heads = [...(table.tHead?.rows[0]?.cells ?? [])].map((head) => head.textContent)
      for (const row of table.tBodies[0]?.rows ?? []) {
        for (const [i, cell] of [...row.cells].entries()) if (heads[i]) cell.dataset.label = heads[i]
      }
    }
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0
    else part.removeAttribute('tabindex')
  }
  const resized = new ResizeObserver(mark)
  for (const each of [part, ...part.children]) resized.observe(each)
  const changed = new MutationObserver(mark)
  changed.observe(part, { childList: true, characterData: true, subtree: true })
  return () => {
    resized.disconnect()
    changed.disconnect()
  }
}
