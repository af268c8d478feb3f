package engine

import (
	"sync/atomic"

	"github.com/weirhq/weir"
)

// lossy remembers something about each of many keys for a while. It is a table of fixed size, so
// that no client can make it grow: a key has one cell, where another key may replace it. What
// uses such a table does a little worse for a key that was replaced, but nothing wrong.
//
// The table is made with the first entry. Reading takes no lock and changes nothing.
type lossy[T any] struct {
	bits  int // of a key, which choose the cell
	cells atomic.Pointer[[]atomic.Pointer[entry[T]]]
}

type entry[T any] struct {
	key   uint64
	value T
}

// get returns what is remembered of a key.
func (t *lossy[T]) get(key uint64) (value T, known bool) {
	if cells := t.cells.Load(); cells != nil {
		if e := (*cells)[key>>(64-t.bits)].Load(); e != nil && e.key == key {
			return e.value, true
		}
	}
	return value, false
}

// put remembers a value.
func (t *lossy[T]) put(key uint64, value T) {
	t.update(key, func(T, bool) (T, bool) { return value, true })
}

// update replaces the value of a key, unless change reports false.
func (t *lossy[T]) update(key uint64, change func(was T, known bool) (now T, changed bool)) {
	cells := t.cells.Load()
	if cells == nil {
		made := make([]atomic.Pointer[entry[T]], 1<<t.bits)
		t.cells.CompareAndSwap(nil, &made)
		cells = t.cells.Load()
	}
	for cell := &(*cells)[key>>(64-t.bits)]; ; {
		var was T
		e := cell.Load()
		known := e != nil && e.key == key
		if known {
			was = e.value
		}
		now, changed := change(was, known)
		if !changed || cell.CompareAndSwap(e, &entry[T]{key, now}) {
			return
		}
	}
}

// forget forgets a key.
func (t *lossy[T]) forget(key uint64) {
	if cells := t.cells.Load(); cells != nil {
		cell := &(*cells)[key>>(64-t.bits)]
		if e := cell.Load(); e != nil && e.key == key {
			cell.CompareAndSwap(e, nil)
		}
	}
}

// usageKey is the key of a client's usage under a limit.
func (e *Engine) usageKey(key string, limit *weir.Compiled) uint64 {
	return e.hash(key) ^ limit.Kind()*0x9e3779b97f4a7c15 // the lower bits of two limits of a rule are the same
}
