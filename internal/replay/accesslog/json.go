package accesslog

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	errJSON = errors.New("not a JSON object; the line may be cut off")
	errDeep = errors.New("the JSON is nested too deeply")
)

// maxDepth bounds the nesting, and so the stack.
const maxDepth = 16

// ranks of two names of usualJSON that belong together: Caddy's time, and how long
// a request took, which others write in other units.
const rankTS, rankCaddyDuration = 1, 1

// parseJSON goes through an object once and keeps what is on the list of names.
func (p *Parser) parseJSON(line []byte) error {
	s := scanner{p: p, line: line}
	p.path = p.path[:0]
	s.space()
	if s.at == len(line) || line[s.at] != '{' {
		return errJSON
	}
	if err := s.object(0, true); err != nil {
		return err
	}
	s.space()
	if s.at != len(line) {
		return errJSON
	}
	if p.rank[slotDuration] == rankCaddyDuration && p.rank[slotTime] != rankTS {
		p.found[slotDuration] = nil
	}
	return nil
}

// scanner is a place in a line. It is strict about the structure, which tells where
// names and values are, and lenient within numbers.
type scanner struct {
	p    *Parser
	line []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.line) {
		switch s.line[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next skips space, and reports whether a character comes, which it steps over.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.at < len(s.line) && s.line[s.at] == c {
		s.at++
		return true
	}
	return false
}

// object reads an object whose brace is next. wanted is whether anybody wants
// something in it.
func (s *scanner) object(depth int, wanted bool) error {
	if depth > maxDepth {
		return errDeep
	}
	s.at++
	if s.next('}') {
		return nil
	}
	outer := len(s.p.path)
	for {
		s.space()
		if s.at == len(s.line) || s.line[s.at] != '"' {
			return errJSON
		}
		name, err := s.str()
		if err != nil {
			return err
		}
		if wanted {
			s.p.path = s.p.path[:outer]
			if outer > 0 {
				s.p.path = append(s.p.path, '.')
			}
			s.p.path = append(s.p.path, name...)
		}
		if !s.next(':') {
			return errJSON
		}
		if err := s.value(depth, wanted, wanted); err != nil {
			return err
		}
		if s.next('}') {
			s.p.path = s.p.path[:outer]
			return nil
		}
		if !s.next(',') {
			return errJSON
		}
	}
}

// value reads whatever is next. It is kept if its name is on the list; inside is
// whether names within it may be.
func (s *scanner) value(depth int, keep, inside bool) error {
	s.space()
	if s.at == len(s.line) {
		return errJSON
	}
	switch s.line[s.at] {
	case '{':
		return s.object(depth+1, inside && s.p.open[string(s.p.path)])
	case '[':
		return s.list(depth+1, keep)
	case '"':
		text, err := s.str()
		if err == nil && keep {
			s.p.keep(text)
		}
		return err
	}
	word := s.word()
	if len(word) == 0 {
		return errJSON
	}
	if keep && (word[0] >= '0' && word[0] <= '9' || word[0] == '-') {
		s.p.keep(word)
	}
	return nil
}

// list reads a list, for which its first value stands that says something.
func (s *scanner) list(depth int, keep bool) error {
	if depth > maxDepth {
		return errDeep
	}
	s.at++
	if s.next(']') {
		return nil
	}
	for {
		if err := s.value(depth, keep, false); err != nil {
			return err
		}
		if s.next(']') {
			return nil
		}
		if !s.next(',') {
			return errJSON
		}
	}
}

// word reads a number, true, false or null.
func (s *scanner) word() []byte {
	begin := s.at
	for s.at < len(s.line) {
		switch c := s.line[s.at]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			s.at++
		default:
			return s.line[begin:s.at]
		}
	}
	return s.line[begin:]
}

// str reads a string whose quote is next, and makes plain what is escaped in it:
// that is never longer.
func (s *scanner) str() ([]byte, error) {
	s.at++
	begin := s.at
	n := bytes.IndexByte(s.line[begin:], '"')
	if n < 0 {
		return nil, errJSON
	}
	if bytes.IndexByte(s.line[begin:begin+n], '\\') < 0 {
		s.at = begin + n + 1
		return s.line[begin : begin+n], nil
	}
	to := begin
	for s.at < len(s.line) {
		c := s.line[s.at]
		s.at++
		switch c {
		case '"':
			return s.line[begin:to], nil
		case '\\':
			var room [utf8.UTFMax]byte
			plain, ok := s.escape(room[:0])
			if !ok {
				return nil, errJSON
			}
			to += copy(s.line[to:], plain)
		default:
			s.line[to] = c
			to++
		}
	}
	return nil, errJSON
}

// escape reads what follows a backslash.
func (s *scanner) escape(plain []byte) ([]byte, bool) {
	if s.at == len(s.line) {
		return nil, false
	}
	c, last := unescape(s.line, s.at) // \xHH, too, which JSON does not have, and nginx writes unless told otherwise
	switch s.line[s.at] {
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		s.at++
		r, ok := s.unit()
		if !ok {
			return nil, false
		}
		if utf16.IsSurrogate(r) {
			r = s.pair(r)
		}
		return utf8.AppendRune(plain, r), true
	}
	s.at = last + 1
	return append(plain, c), true
}

// unit reads the four digits after \u.
func (s *scanner) unit() (r rune, ok bool) {
	if len(s.line)-s.at < 4 {
		return 0, false
	}
	for range 4 {
		digit := hex(s.line[s.at])
		if digit == 16 {
			return 0, false
		}
		r = r<<4 | rune(digit)
		s.at++
	}
	return r, true
}

// pair reads the second half of a character beyond the first 65536, if it is there.
func (s *scanner) pair(first rune) rune {
	if len(s.line)-s.at < 6 || s.line[s.at] != '\\' || s.line[s.at+1] != 'u' {
		return utf8.RuneError
	}
	before := s.at
	s.at += 2
	second, ok := s.unit()
	r := utf16.DecodeRune(first, second)
	if !ok || r == utf8.RuneError {
		s.at = before
	}
	return r
}

// keep puts a value into the slots that its name is for. An empty one, or a dash,
// says nothing.
func (p *Parser) keep(value []byte) {
	if len(value) == 0 || len(value) == 1 && value[0] == '-' {
		return
	}
	for _, t := range p.json[string(p.path)] {
		if p.found[t.slot] == nil || t.rank < p.rank[t.slot] {
			p.found[t.slot], p.rank[t.slot] = value, t.rank
		}
	}
}
