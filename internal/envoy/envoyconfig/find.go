package envoyconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
)

// Entry is a part of a descriptor that a request brings.
type Entry struct{ Key, Value string }

// Query is a list of entries, and memory to work in. It may be used again for the next,
// which then costs no memory.
type Query struct {
	Entries []Entry

	// ID names the hold that the entries are about, and Ends is whether they end it. They are set by Find
	// for a node that has a Hold.
	ID   string
	Ends bool

	text   []byte // the composite key that is looked for
	beside []int  // entries without a descriptor, because they are about a hold
}

// Clear makes the query ready for another list.
func (q *Query) Clear() {
	clear(q.Entries)
	q.Entries, q.beside = q.Entries[:0], q.beside[:0]
	q.ID, q.Ends = "", false
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
//
// Entries that name a hold and its end need no descriptor. For a node that has a Hold, they are removed from the list,
// so that they are no part of the counter's key.
func (d *Domain) Find(q *Query) *Node {
	at, last := &d.root, (*branch)(nil)
	for i := range q.Entries {
		e := &q.Entries[i]
		switch b := at.findBranch(q, e); {
		case b != nil:
			at, last = &b.below, b
		case slices.Contains(d.beside, e.Key):
			q.beside = append(q.beside, i)
		default:
			return nil
		}
	}
	switch {
	case last == nil || last.node == nil:
		return nil
	case last.node.Hold != nil:
		if !last.node.Hold.take(q) {
			return nil
		}
	case len(q.beside) > 0:
		return nil
	}
	return last.node
}

// findBranch returns the branch for an entry.
func (l *level) findBranch(q *Query, e *Entry) *branch {
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
	hold          *Hold
}

// Override returns a node for a limit that a request brings along, of n in as many
// units as the multiplier says; 0 is one. It counts in fixed windows, and goes on with
// the counter of a limit in the file that has the same period. Holds are those of the file.
func (d *Domain) Override(q *Query, n uint32, unit Unit, multiplier uint32) (*Node, error) {
	o := override{n: n, multiplier: multiplier, unit: unit}
	if len(d.beside) > 0 {
		if in := d.Find(q); in != nil {
			o.hold = in.Hold
		}
	}
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
	node.Hold = o.hold
	l := Limit{N: o.n, Unit: o.unit, Multiplier: o.multiplier, Period: period * times, Algorithm: weir.FixedWindow, named: times == 1}
	l.follow(d.config.calendar)
	node.Limits = []Limit{l}
	if err := node.compileLimits(); err != nil {
		return nil, fmt.Errorf("envoy: the limit of a descriptor: %w", err)
	}
	return &node, nil
}

const (
	// maxValue is the longest value that stands in a key as it is.
	maxValue = 256

	// salt keeps these hashes apart from those of other programs.
	salt = "weir:envoy:"

	// hashBytes of a SHA-256 are enough: a value for a given hash cannot be found.
	hashBytes = 16
)

// AppendKey appends the key that a store counts by: "edge|path=/login|user=alice", the
// domain and every entry.
//
// Lists that differ in any part have different keys, whatever bytes are in them: "|",
// "=" and "\" have a "\" before them. A value of more than 256 bytes is hashed, and so
// is one whose key sounds as if it were a secret, such as authorization; then it begins
// with "\sha256:". A key that would be longer than weir.MaxKeyLen is a hash as a whole.
// It allocates nothing but to grow dst.
func (d *Domain) AppendKey(dst []byte, entries []Entry) []byte {
	begin := len(dst)
	dst = appendEscaped(dst, d.Name)
	for i := range entries {
		e := &entries[i]
		dst = appendEscaped(append(dst, '|'), e.Key)
		dst = append(dst, '=')
		if len(e.Value) > maxValue || e.Value != "" && d.isSecret(e.Key) {
			from := len(dst)
			dst = append(append(append(append(dst, salt...), e.Key...), '='), e.Value...)
			dst = hashFrom(dst, from)
		} else {
			dst = appendEscaped(dst, e.Value)
		}
	}
	if len(dst)-begin > weir.MaxKeyLen {
		dst = hashFrom(dst, begin)
	}
	return dst
}

// hashFrom puts a hash in the place of all that follows.
func hashFrom(dst []byte, from int) []byte {
	sum := sha256.Sum256(dst[from:])
	return hex.AppendEncode(append(dst[:from], `\sha256:`...), sum[:hashBytes])
}

func appendEscaped(dst []byte, text string) []byte {
	if !strings.ContainsAny(text, `|=\`) {
		return append(dst, text...)
	}
	for i := range len(text) {
		if c := text[i]; c == '|' || c == '=' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return dst
}

// isSecret is whether the values of a key must not be seen in a store or a log.
func (d *Domain) isSecret(key string) bool {
	if secret, known := d.config.secrets[key]; known {
		return secret
	}
	return soundsSecret(key)
}

// secretWords are in the names of things that must not be seen. They are longer than
// one would think, since Envoy has keys such as generic_key, authority and authenticated.
var secretWords = []string{
	"apikey", "api_key", "api-key", "access_key", "access-key", "authorization", "authentication", "auth_", "auth-", "bearer",
	"cookie", "credential", "jwt", "password", "passwd", "secret", "session", "token",
}

func soundsSecret(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

// indexOf is bytes.Index without a copy of what is looked for.
func indexOf(text []byte, part string) int {
	return bytes.Index(text, unsafe.Slice(unsafe.StringData(part), len(part)))
}
