package rule

import "slices"

// pageLen is how many elements a page has: a change copies one page, and a million records are 2,000 pages.
const pageLen = 512

// pages are a slice of which versions share all that is equal in them. A version that is being made owns the pages that it
// has copied; one that is made owns none, and does not change.
type pages[T any] struct {
	all   []*[pageLen]T
	owned []bool
}

func (p *pages[T]) at(i uint32) *T { return &p.all[i/pageLen][i%pageLen] }

// edit returns an element to be changed.
func (p *pages[T]) edit(i uint32) *T {
	n := i / pageLen
	if !p.owned[n] {
		page := *p.all[n]
		p.all[n], p.owned[n] = &page, true
	}
	return &p.all[n][i%pageLen]
}

// fork returns a version to be changed.
func (p *pages[T]) fork() pages[T] { return pages[T]{slices.Clone(p.all), make([]bool, len(p.all))} }

// newPages returns so many elements, or a few more, to be changed.
func newPages[T any](n int) (p pages[T]) {
	p.grow(n)
	return p
}

func (p *pages[T]) grow(n int) {
	for len(p.all)*pageLen < n {
		p.all, p.owned = append(p.all, new([pageLen]T)), append(p.owned, true)
	}
}
