package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/disk"
)

// windows are what something has in each window of the calendar, the latest last.
type windows[T any] []window[T]

type window[T any] struct {
	index int64
	value T
}

func (w windows[T]) search(index int64) (int, bool) {
	return slices.BinarySearchFunc(w, index, func(x window[T], index int64) int { return cmp.Compare(x.index, index) })
}

// at is what a window has, or nil.
func (w windows[T]) at(index int64) *T {
	if i, found := w.search(index); found {
		return &w[i].value
	}
	return nil
}

// open makes a window if it is not there. It drops those that can no longer be read, once they are
// so many.
func (w *windows[T]) open(index int64, kept, many int) *T {
	i, found := w.search(index)
	if !found {
		*w = slices.Insert(*w, i, window[T]{index: index})
		if len(*w) > kept+many {
			*w = slices.DeleteFunc(*w, func(x window[T]) bool { return x.index <= index-int64(kept) || x.index > index+int64(kept) })
			i, _ = w.search(index)
		}
	}
	return &(*w)[i].value
}

func (w *windows[T]) walk(c *disk.Codec, most int, one func(*T)) {
	disk.List(c, (*[]window[T])(w), func(i int, x *window[T]) {
		disk.Number(c, &x.index, -exact, exact)
		one(&x.value)
		c.Must(i < most && (i == 0 || (*w)[i-1].index < x.index))
	})
}

// sums are what counters or distributions will have after a call; any may be named twice. They are
// floating-point numbers because a script in Redis has no others.
type sums struct {
	of    map[ident]float64
	made  int  // new names
	grows bool // a name that exists
}

// addAmount adds to what a name has in its window, which is nil if there is no such window.
func (s *sums) addAmount(id ident, exists bool, has *counter.Amount, by counter.Amount) error {
	sum, known := s.of[id]
	switch {
	case known:
	case !exists:
		s.made++
	case has == nil:
		s.grows = true
	default:
		sum = float64(*has)
	}
	if sum += float64(by); math.Abs(sum) > float64(counter.MaxAmount) {
		return counter.ErrRange
	}
	s.of[id] = sum
	return nil
}
