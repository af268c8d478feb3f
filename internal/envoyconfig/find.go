package envoyconfig

import (
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

// Entry is a part of a descriptor that a request brings.
type Entry struct{ Key, Value string }

// Query is a list of entries, and room to work in. It may be used again for the next,
// which then costs no memory.
type Query struct {
	Entries []Entry

	text []byte // the composite key that is looked for
}

// Clear makes the query ready for another list.
func (q *Query) Clear() {
	clear(q.Entries)
	q.Entries = q.Entries[:0]
}

// Find returns the node that a list of entries leads to, or nil if there is none, or if
// it is on a list of those who have no limit.
//
// At each level the very value goes first, then patterns in the order of the file, then
// the key without a value. What was chosen is never taken back, so that a list that
// does not go on below it has no limit. A node counts only for a list that ends there.
//
// The value of an entry that shares a limit with all others of its pattern is replaced
// by the pattern, so that AppendKey names the counter of all of them.
func (d *Domain) Find(q *Query) *Node {
	at := &d.root
	for i := range q.Entries {
		e := &q.Entries[i]
		b := at.find(q, e)
		if b == nil {
			return nil
		}
		if i == len(q.Entries)-1 {
			return b.node
		}
		at = &b.below
	}
	return nil
}

// find returns the branch for an entry.
func (l *level) find(q *Query, e *Entry) *branch {
	q.text = append(append(append(q.text[:0], e.Key...), '_'), e.Value...)
	if b := l.exact[string(q.text)]; b != nil {
		return b
	}
	for _, b := range l.wild {
		if matches(b.parts, q.text) {
			if b.shared {
				e.Value = b.pattern(e.Key)
			}
			return b
		}
	}
	return l.exact[e.Key]
}

// pattern is what stands for the values of a key.
func (b *branch) pattern(key string) string {
	if n := len(key); len(b.composite) > n && b.composite[n] == '_' && b.composite[:n] == key {
		return b.composite[n+1:]
	}
	return b.composite
}

// matches is whether a text consists of the parts of a pattern, in order, with anything
// in between. It takes the first place where a part fits, which is as good as any.
func matches(parts []string, text []byte) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || string(text[:len(first)]) != first || string(text[len(text)-len(last):]) != last {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := indexOf(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// maxOverrides bounds what is kept of limits that requests bring. Who sends more
// different ones than that pays for it by compiling them again.
const maxOverrides = 10_000

// override is a limit that a request brings.
type override struct {
	n, multiplier uint32
	unit          Unit
}

// Override returns a node for a limit that a request brings along, of n in as many
// units as the multiplier says; 0 is one. It counts in fixed windows, and goes on with
// the counter of a limit in the file that has the same period.
func (d *Domain) Override(n uint32, unit Unit, multiplier uint32) (*Node, error) {
	o := override{n, multiplier, unit}
	d.mu.RLock()
	node := d.overrides[o]
	d.mu.RUnlock()
	if node != nil {
		return node, nil
	}
	node, err := d.newOverride(o)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.overrides == nil || len(d.overrides) >= maxOverrides {
		d.overrides = map[override]*Node{}
	}
	d.overrides[o] = node
	return node, nil
}

func (d *Domain) newOverride(o override) (*Node, error) {
	period := o.unit.Period()
	times := time.Duration(max(1, o.multiplier))
	switch {
	case period == 0:
		return nil, fmt.Errorf("envoy: the limit of a descriptor has the unknown unit %d; send SECOND to YEAR", o.unit)
	case period > weir.MaxPeriod/times:
		return nil, fmt.Errorf("envoy: the limit of a descriptor is for %d times a %s, which is longer than ten years; send a shorter one", times, o.unit)
	}
	node := d.brought
	node.Limits = []Limit{{N: o.n, Unit: o.unit, Multiplier: o.multiplier, Period: period * times, Algorithm: weir.FixedWindow}}
	if err := node.compileLimits(); err != nil {
		return nil, fmt.Errorf("envoy: the limit of a descriptor: %w", err)
	}
	return &node, nil
}
