package llm

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value is something that stands at a node.
type value struct {
	id   id
	kind byte   // one of "k0tfn{[: a string, a name, a number, true, false, null, or what begins
	text []byte // the first bytes of a string or a number, decoded
	size int64  // how many bytes a string has, decoded

	begin, end int64 // where it is in the document; end only of what has ended
}

const (
	maxNested = 32  // nodes are not followed further down
	maxKept   = 128 // of the bytes of a value
)

// scanner reads a JSON document as its bytes come, and tells what stands at the nodes of
// a tree. It needs no memory but its own, however long and however deep the document is,
// and it never fails: what is not JSON has no values, or strange ones.
type scanner struct {
	root  *node
	visit func(*value)

	offset int64
	depth  int64 // how many objects and arrays are open
	open   [maxNested]frame

	state state
	isKey bool
	hex   uint32 // of \u
	digit uint8
	v     value
	kept  [maxKept]byte

	twice id // a name that an object has twice; 0 if there is none
	alike id // a name that only some upstreams take for the one that is known
}

// frame is an object or an array that is open.
type frame struct {
	node   *node
	kid    *node  // of the name that was read last
	seen   uint32 // names that are there at most once, as bits
	object bool
	named  bool // the name of the next value has been read
}

type state uint8

const (
	between state = iota
	inString
	afterBackslash
	inHex
	inWord // a number, true, false or null
)

// reset begins another document.
func (s *scanner) reset() {
	s.offset, s.depth, s.state, s.isKey, s.twice, s.alike = 0, 0, between, false, 0, 0
	s.v.text = nil // it may be somebody else's memory
}

// here is the node of the next value.
func (s *scanner) here() *node {
	if s.depth == 0 {
		return s.root
	}
	f := &s.open[min(s.depth, maxNested)-1]
	if f.object && s.depth <= maxNested {
		return f.kid
	}
	return f.node
}

func (s *scanner) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		switch s.state {
		case between:
			switch c := p[i]; c {
			case ' ', '\t', '\r', '\n':
			case ',', ':':
				if f := s.frame(); f != nil {
					f.named = c == ':'
				}
			case '"':
				s.beginString(s.offset + int64(i))
				i = s.whole(p, i+1)
			case '{', '[':
				s.enter(c, s.offset+int64(i))
			case '}', ']':
				s.depth = max(0, s.depth-1)
			default:
				s.begin(inWord, c, idOf(s.here()), s.offset+int64(i))
				i-- // it is the first byte of the word
			}
		case inString:
			// Most of a document is the inside of strings.
			from := i
			i += plain(p[i:])
			if s.isKey || s.v.id != 0 {
				s.keep(p[from:i])
			}
			switch {
			case i == len(p):
			case p[i] == '\\':
				s.state = afterBackslash
			default:
				s.endString(s.offset + int64(i) + 1)
			}
		case afterBackslash:
			s.escaped(p[i])
		case inHex:
			s.hexDigit(p[i])
		case inWord:
			switch p[i] {
			case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '[', '{', '"':
				s.endWord(s.offset + int64(i))
				i-- // it is between values
			default:
				from := i
				for i+1 < len(p) && isWord(p[i+1]) {
					i++
				}
				s.keep(p[from : i+1])
			}
		}
	}
	s.offset += int64(len(p))
}

// whole reads a string from its first byte on, if its end is there, too, and nothing in it is escaped.
// Nearly all are so, and are not copied. It returns where the last byte is that was read.
func (s *scanner) whole(p []byte, from int) int {
	n := plain(p[from:])
	end := from + n
	if end == len(p) || p[end] != '"' {
		return from - 1
	}
	if s.isKey || s.v.id != 0 {
		s.v.size, s.v.text = int64(n), p[from:from+min(n, maxKept)]
	}
	s.endString(s.offset + int64(end) + 1)
	return end
}

// isWord reports whether a byte is a part of a number or a word.
func isWord(c byte) bool { return '0' <= c && c <= '9' || c == '.' || 'a' <= c && c <= 'z' }

// plain is how many bytes there are before a quote or a backslash. It looks at eight of them at
// a time: a byte of x is zero if its highest bit is set in (x - 1) &^ x and in no lower byte. What
// is long is read by blocks, each as long as all before it, so that little is read twice in text with
// many escapes.
func plain(p []byte) (n int) {
	const ones, highest, short = 0x0101010101010101, 0x8080808080808080, 32
	for n+8 <= len(p) && n < short {
		x := binary.LittleEndian.Uint64(p[n:])
		quote, backslash := x^ones*'"', x^ones*'\\'
		if found := ((quote-ones)&^quote | (backslash-ones)&^backslash) & highest; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
		n += 8
	}
	for n >= short && n < len(p) {
		block := p[n:min(2*n, len(p))]
		quote := bytes.IndexByte(block, '"')
		if quote >= 0 {
			block = block[:quote]
		}
		if backslash := bytes.IndexByte(block, '\\'); backslash >= 0 {
			return n + backslash
		}
		if n += len(block); quote >= 0 {
			return n
		}
	}
	for n < len(p) && p[n] != '"' && p[n] != '\\' {
		n++
	}
	return n
}

// frame is the object or array that is open; nil if there is none, or it is too deep.
func (s *scanner) frame() *frame {
	if uint64(s.depth-1) >= maxNested {
		return nil
	}
	return &s.open[s.depth-1]
}

// enter begins an object or an array.
func (s *scanner) enter(kind byte, at int64) {
	where := s.here()
	if s.depth < maxNested {
		f := &s.open[s.depth]
		f.node, f.kid, f.seen, f.object, f.named = where, nil, 0, kind == '{', false
	}
	s.depth++
	s.begin(between, kind, idOf(where), at)
	s.v.end = at + 1
	s.tell(&s.v)
}

func (s *scanner) beginString(at int64) {
	f := s.frame()
	if f == nil || !f.object || f.named {
		s.begin(inString, '"', idOf(s.here()), at)
		return
	}
	s.begin(inString, '"', idOf(f.node), at)
	s.isKey = true
}

// begin begins a value. It writes each field in its place, because that takes less time than a copy.
func (s *scanner) begin(next state, kind byte, what id, at int64) {
	s.state, s.isKey = next, false
	v := &s.v
	v.id, v.kind, v.size, v.begin, v.end = what, kind, 0, at, 0
	v.text = s.kept[:0]
}

// keep counts bytes of a value, and remembers the first.
func (s *scanner) keep(b []byte) {
	s.v.size += int64(len(b))
	if room := maxKept - len(s.v.text); room > 0 {
		s.v.text = append(s.v.text, b[:min(room, len(b))]...)
	}
}

func (s *scanner) escaped(c byte) {
	s.state = inString
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		s.state, s.hex, s.digit = inHex, 0, 0
		return
	}
	s.keep([]byte{c})
}

func (s *scanner) hexDigit(c byte) {
	n := strings.IndexByte("0123456789abcdef", c|('a'-'A')) // digits have that bit
	if n < 0 {
		s.state = inString // broken; whatever it is, it is counted
		s.keep([]byte{c})
		return
	}
	s.hex = s.hex<<4 | uint32(n)
	if s.digit++; s.digit == 4 {
		s.state = inString
		s.keep(utf8.AppendRune(nil, rune(s.hex))) // half of a pair counts as one of its own
	}
}

func (s *scanner) endString(end int64) {
	s.state = between
	s.v.end = end
	if !s.isKey {
		s.tell(&s.v)
		return
	}
	f := &s.open[s.depth-1]
	f.kid = nil
	if s.v.size <= maxKept {
		s.name(f)
	} else if f.node != nil {
		f.kid = f.node.rest
	}
	s.v.kind = 'k'
	s.tell(&s.v)
}

// name finds the node of a name that has been read.
func (s *scanner) name(f *frame) {
	kid, exact := f.node.kid(s.v.text)
	f.kid = kid
	if kid == nil || !kid.once {
		return
	}
	if bit := uint32(1) << kid.id; f.seen&bit != 0 {
		s.twice = kid.id
	} else if f.seen |= bit; !exact {
		s.alike = kid.id
	}
}

func (s *scanner) endWord(end int64) {
	s.state = between
	s.v.end = end
	switch s.v.kind {
	case 't', 'f', 'n':
	default:
		s.v.kind = '0'
	}
	s.tell(&s.v)
}

func (s *scanner) tell(v *value) {
	if v.id != 0 {
		s.visit(v)
	}
}

// finish says that the document is over: a number may have been its last value.
func (s *scanner) finish() {
	if s.state == inWord {
		s.endWord(s.offset)
	}
}

// partial is what has been read of a string that has not ended.
func (s *scanner) partial() (id, int64) {
	if s.state == between || s.state == inWord || s.isKey {
		return 0, 0
	}
	return s.v.id, s.v.size
}

// number is the value as a count: 0 if it is none. Some upstreams take a string for a number,
// so it may be one.
func (v *value) number() int64 {
	if v.kind != '0' && v.kind != '"' || len(v.text) == 0 {
		return 0
	}
	if v.size > maxKept {
		if v.kind == '0' && v.text[0] != '-' {
			return MaxTokens
		}
		return 0
	}
	if n, plain := digits(v.text); plain {
		return n
	}
	f, err := strconv.ParseFloat(string(v.text), 64)
	switch {
	case math.IsNaN(f), err != nil && !math.IsInf(f, 0), f < 1:
		return 0
	case f >= MaxTokens:
		return MaxTokens
	}
	return int64(math.Ceil(f))
}

// digits is a number of few digits, as nearly all are.
func digits(text []byte) (n int64, plain bool) {
	if len(text) > 12 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
