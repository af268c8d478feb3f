package llm

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// place is a position in a document that somebody is interested in. Arrays are not
// positions: the elements of a list are where the list is.
type place struct {
	id   id
	deep bool      // names that are not known are the same place
	kids [16][]kid // by the length of their names, as far as that goes
}

type kid struct {
	name string // in lower case
	*place
}

// id says what is at a place; 0 is nothing.
type id uint8

// at makes a place of names and what is there. Names are compared without case, because some
// upstreams do.
func at(what id, kids ...any) *place {
	p := &place{id: what}
	for i := 0; i < len(kids); i += 2 {
		p.put(kids[i].(string), kids[i+1].(*place))
	}
	return p
}

func (p *place) put(name string, to *place) {
	at := len(name) % len(p.kids)
	p.kids[at] = append(p.kids[at], kid{strings.ToLower(name), to})
}

// kid is the place of a name. A table of few names by their length is faster than a map.
func (p *place) kid(name []byte) *place {
	if p == nil {
		return nil
	}
	kids := p.kids[len(name)%len(p.kids)]
	for i := range kids {
		if k := &kids[i]; string(name) == k.name || isFold(name, k.name) {
			return k.place
		}
	}
	if p.deep {
		return p
	}
	return nil
}

// isFold reports whether a name is this one in letters of either case. Only ASCII has two.
func isFold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// value is something that stands at a place.
type value struct {
	id   id
	kind byte   // one of "k0tfn{[: a string, a name, a number, true, false, null, or what begins
	text []byte // the first bytes of a string or a number, decoded
	size int64  // how many bytes a string has, decoded

	begin, end int64 // where it is in the document; end only of what has ended
}

const (
	maxNested = 32  // places are not followed further down
	maxKept   = 128 // of the bytes of a value
)

// scanner reads a JSON document as its bytes come, and tells what stands at the places of
// a tree. It needs no memory but its own, however long and however deep the document is,
// and it never fails: what is not JSON has no values, or strange ones.
type scanner struct {
	root  *place
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
}

// frame is an object or an array that is open.
type frame struct {
	place  *place
	kid    *place // of the name that was read last
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
	s.offset, s.depth, s.state, s.isKey = 0, 0, between, false
}

// here is the place of the next value.
func (s *scanner) here() *place {
	if s.depth == 0 {
		return s.root
	}
	f := &s.open[min(s.depth, maxNested)-1]
	if f.object && s.depth <= maxNested {
		return f.kid
	}
	return f.place
}

func (s *scanner) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch s.state {
		case between:
			s.token(c, s.offset+int64(i))
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
			s.escaped(c)
		case inHex:
			s.hexDigit(c)
		case inWord:
			switch c {
			case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '[', '{', '"':
				s.endWord(s.offset + int64(i))
				s.token(c, s.offset+int64(i))
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

// isWord reports whether a byte is a part of a number or a word.
func isWord(c byte) bool { return '0' <= c && c <= '9' || c == '.' || 'a' <= c && c <= 'z' }

// plain is how many bytes there are before a quote or a backslash. It looks at eight of them at
// a time: a byte of x is zero if its highest bit is set in (x - 1) &^ x and in no lower byte. What
// is long is read by blocks, which are short enough that text with many escapes takes no longer.
func plain(p []byte) (n int) {
	const ones, highest, block = 0x0101010101010101, 0x8080808080808080, 128
	for n+8 <= len(p) {
		if n == 32 {
			for n+block <= len(p) && bytes.IndexByte(p[n:n+block], '"') < 0 && bytes.IndexByte(p[n:n+block], '\\') < 0 {
				n += block
			}
			if n+8 > len(p) {
				break
			}
		}
		x := binary.LittleEndian.Uint64(p[n:])
		quote, backslash := x^ones*'"', x^ones*'\\'
		if ((quote-ones)&^quote|(backslash-ones)&^backslash)&highest != 0 {
			break
		}
		n += 8
	}
	for n < len(p) && p[n] != '"' && p[n] != '\\' {
		n++
	}
	return n
}

// token reads a byte between values.
func (s *scanner) token(c byte, at int64) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '{', '[':
		where := s.here()
		if s.depth < maxNested {
			f := &s.open[s.depth]
			f.place, f.kid, f.object, f.named = where, nil, c == '{', false
		}
		s.depth++
		s.v = value{id: idOf(where), kind: c, begin: at, end: at + 1}
		s.tell(&s.v)
	case '}', ']':
		if s.depth > 0 {
			s.depth--
		}
	case ',', ':':
		if s.depth > 0 && s.depth <= maxNested {
			s.open[s.depth-1].named = c == ':'
		}
	case '"':
		s.begin(inString, '"', at)
	default:
		s.begin(inWord, c, at)
		s.keep([]byte{c})
	}
}

func (s *scanner) begin(next state, kind byte, at int64) {
	s.state = next
	s.v = value{kind: kind, begin: at, text: s.kept[:0]}
	s.isKey = false
	if s.depth > 0 && s.depth <= maxNested {
		f := &s.open[s.depth-1]
		s.isKey = kind == '"' && f.object && !f.named
		if s.isKey {
			s.v.id = idOf(f.place)
			return
		}
	}
	s.v.id = idOf(s.here())
}

func idOf(p *place) id {
	if p == nil {
		return 0
	}
	return p.id
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
		f.kid = f.place.kid(s.v.text)
	} else if f.place != nil && f.place.deep {
		f.kid = f.place
	}
	s.v.kind = 'k'
	s.tell(&s.v)
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
	case math.IsNaN(f), err != nil && !math.IsInf(f, 0), f <= 0:
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
