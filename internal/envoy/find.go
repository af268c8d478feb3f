package envoy

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
