// Package tally has what all counters of verdicts need: it finds the counters of a rule,
// spreads requests over stripes, bounds names, and counts holds that expire. What is counted,
// and how it is read, is up to each: metrics only grow and have Prometheus's bounds, while
// statistics are emptied every second and have rankings besides.
package tally

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// Other is the name under which everything beyond a bound is counted. No id of a rule has
// parentheses.
const Other = "(other)"

// Golden scatters what it is multiplied by. So do its lowest 28 bits alone.
const Golden = 0x9E3779B979E3779B

// Stripe picks one of several places to count in, so that cores seldom contend; mask is
// their number less 1, a power of two. It goes by the address of the verdict, which callers
// use again and again: one each, or one a core.
func Stripe(v *engine.Verdict, mask uint64) uint64 {
	return uint64(uintptr(unsafe.Pointer(v))) * Golden >> 32 & mask
}

// Index finds the counters of a rule by its pointer. It never changes, so that it is read
// without a lock.
type Index[C any] struct {
	All    []*C // in the order of the rules; the last one is for all that are not known
	Beyond bool // there are rules without counters of their own

	byID  map[string]*C // without the last one
	slots []slot[C]     // open addressing; its length is a power of two
	shift uint
}

type slot[C any] struct {
	rule     *rule.Entry
	counters *C
	aged     bool // the rule is of the index before
}

// Rules are what an index is made of.
type Rules[C any] struct {
	Entries []*rule.Entry // several with the same id count together
	Most    int           // of them have counters of their own, the first ones

	// Make returns the counters of a rule, given how many are in the index already; nil if
	// it has none of its own.
	Make  func(e *rule.Entry, number int) *C
	Other *C // counts all other rules

	// Before is the index until now, or nil. Its rules are still found, because their
	// verdicts may still be coming, with the counters of the rule that has the id now. If there
	// is none, they have those that they had, provided that KeepRetired is true.
	Before      *Index[C]
	KeepRetired bool
}

// Index makes an index.
func (r *Rules[C]) Index() *Index[C] {
	x := &Index[C]{byID: map[string]*C{}}
	found := map[*rule.Entry]slot[C]{}
	for _, e := range r.Entries {
		c := x.byID[e.ID]
		if c == nil && len(x.All) < r.Most {
			if c = r.Make(e, len(x.All)); c != nil {
				x.byID[e.ID] = c
				x.All = append(x.All, c)
			}
		}
		if c != nil {
			found[e] = slot[C]{rule: e, counters: c}
		}
		x.Beyond = x.Beyond || c == nil
	}
	x.All = append(x.All, r.Other)
	if r.Before != nil {
		for _, old := range r.Before.slots {
			if _, known := found[old.rule]; known || old.rule == nil || old.aged {
				continue
			}
			if c := x.byID[old.rule.ID]; c != nil {
				found[old.rule] = slot[C]{old.rule, c, true}
			} else if r.KeepRetired {
				found[old.rule] = slot[C]{old.rule, old.counters, true}
			}
		}
	}
	size := 1 << bits.Len(uint(2*len(found)+1))
	x.slots, x.shift = make([]slot[C], size), uint(64-bits.Len(uint(size-1)))
	for e, s := range found {
		i := x.hash(e)
		for x.slots[i].rule != nil {
			i = (i + 1) & uint(size-1)
		}
		x.slots[i] = s
	}
	return x
}

// hash picks a slot by the address, which does not change as long as the index lives.
func (x *Index[C]) hash(e *rule.Entry) uint {
	return uint(uint64(uintptr(unsafe.Pointer(e))) * Golden >> x.shift)
}

// Find returns the counters of a rule.
func (x *Index[C]) Find(e *rule.Entry) *C {
	for i := x.hash(e); ; i = (i + 1) & uint(len(x.slots)-1) {
		switch s := &x.slots[i]; s.rule {
		case e:
			return s.counters
		case nil:
			return x.All[len(x.All)-1]
		}
	}
}

// ByID returns the counters of the rules with an id, and whether they have some of their own.
func (x *Index[C]) ByID(id string) (c *C, own bool) {
	if c = x.byID[id]; c != nil {
		return c, true
	}
	return x.All[len(x.All)-1], false
}

// Made returns what is at a place, and makes it if it is not there: most rules never need it.
func Made[T any](at *atomic.Pointer[T], create func() *T) *T {
	if made := at.Load(); made != nil {
		return made
	}
	at.CompareAndSwap(nil, create())
	return at.Load()
}

// Names are names of which only so many are counted separately, the first ones to come. They
// are safe for concurrent use.
type Names struct {
	Max   int
	mu    sync.RWMutex
	known map[string]struct{}
}

// maxName is the longest name, in bytes.
const maxName = 200

// Of returns the name, Other if it is beyond the bound or no text, or "(none)" if it is "".
func (n *Names) Of(name string) string {
	if name == "" {
		return "(none)"
	}
	n.mu.RLock()
	_, ok := n.known[name]
	n.mu.RUnlock()
	if ok {
		return name
	}
	if len(name) > maxName || !utf8.ValidString(name) {
		return Other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.known[name]; !ok {
		if len(n.known) >= n.Max {
			return Other
		}
		if n.known == nil {
			n.known = make(map[string]struct{})
		}
		n.known[name] = struct{}{}
	}
	return name
}
