package document

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner goes through a text from value to value, and copies nothing of it. Each method skips white
// space, and reports whether what it reads was next; what follows after it was not is of no use. The
// structure is checked, and the inside of strings, numbers and words is not: that is up to who reads them,
// or has asked json.Valid before.
type Scanner struct {
	Text []byte
	At   int // the next byte
}

// Peek returns the next byte, or 0 at the end of the text.
func (s *Scanner) Peek() byte {
	for ; s.At < len(s.Text); s.At++ {
		switch c := s.Text[s.At]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Next reads one byte.
func (s *Scanner) Next(c byte) bool {
	if s.Peek() != c || s.At == len(s.Text) {
		return false
	}
	s.At++
	return true
}

// AtEnd reports whether nothing follows.
func (s *Scanner) AtEnd() bool { return s.Peek() == 0 && s.At == len(s.Text) }

// Object reads an object, and calls member where the value of each name begins. The name is still
// escaped.
func (s *Scanner) Object(member func(name []byte) bool) bool {
	return s.Items('{', '}', func() bool {
		name, ok := s.String()
		return ok && s.Next(':') && member(name)
	})
}

// Items reads a list or an object, from the byte with which that begins to the one with which it ends, and
// calls item where each of its items begins.
func (s *Scanner) Items(begin, end byte, item func() bool) bool {
	if !s.Next(begin) {
		return false
	}
	if s.Next(end) {
		return true
	}
	for item() {
		if s.Next(end) {
			return true
		}
		if !s.Next(',') {
			return false
		}
	}
	return false
}

// String reads a string, and returns what stands between its quotes.
func (s *Scanner) String() ([]byte, bool) {
	if !s.Next('"') {
		return nil, false
	}
	rest := s.Text[s.At:]
	end := bytes.IndexByte(rest, '"')
	if end >= 0 && bytes.IndexByte(rest[:end], '\\') >= 0 {
		for end = 0; end < len(rest) && rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
	}
	if end < 0 || end >= len(rest) {
		return nil, false
	}
	s.At += end + 1
	return rest[:end], true
}

// Word reads a number, true, false or null.
func (s *Scanner) Word() ([]byte, bool) {
	s.Peek()
	begin := s.At
	for ; s.At < len(s.Text); s.At++ {
		if c := s.Text[s.At]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' && c != '+' && c != '.' && c != 'E' {
			break
		}
	}
	return s.Text[begin:s.At], s.At > begin
}

// Value reads any value, and returns its text. It needs no stack, however deep the value is, and does not
// check the structure within.
func (s *Scanner) Value() ([]byte, bool) {
	s.Peek()
	begin := s.At
	for depth := 0; ; {
		ok := true
		switch s.Peek() {
		case '{', '[':
			depth++
			s.At++
			continue
		case '}', ']':
			depth--
			s.At++
		case ',', ':':
			s.At++
			ok = depth > 0
		case '"':
			_, ok = s.String()
		default:
			_, ok = s.Word()
		}
		if !ok || depth <= 0 {
			return s.Text[begin:s.At], ok && depth == 0
		}
	}
}

// Unquote returns what a string says of which this stands between the quotes.
func Unquote(text []byte) string {
	if bytes.IndexByte(text, '\\') >= 0 {
		text, _ = Unescape(bytes.Clone(text))
	}
	return string(text)
}

// Unescape makes plain what is escaped in a text, in its place: that is never longer. It returns false
// if a \u has no four digits. A backslash before anything else stands for what follows. Unlike JSON, it knows \xHH,
// which servers write into logs.
func Unescape(text []byte) ([]byte, bool) {
	to := bytes.IndexByte(text, '\\')
	if to < 0 {
		return text, true
	}
	ok := true
	for at := to; at < len(text); {
		c := text[at]
		if at++; c != '\\' || at == len(text) {
			text[to] = c
			to++
			continue
		}
		c = text[at]
		at++
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'x':
			if r, is := hex(text[at:], 2); is {
				c = byte(r)
				at += 2
			}
		case 'u':
			r, is := hex(text[at:], 4)
			if ok = ok && is; is {
				at += 4
				if utf16.IsSurrogate(r) {
					r = pair(r, text, &at)
				}
				to += utf8.EncodeRune(text[to:], r)
				continue
			}
		}
		text[to] = c
		to++
	}
	return text[:to], ok
}

// pair reads the second half of a character beyond the first 65,536, if it is there.
func pair(first rune, text []byte, at *int) rune {
	if !bytes.HasPrefix(text[*at:], []byte(`\u`)) {
		return utf8.RuneError
	}
	second, is := hex(text[*at+2:], 4)
	r := utf16.DecodeRune(first, second)
	if is && r != utf8.RuneError {
		*at += 6
		return r
	}
	return utf8.RuneError
}

// hex reads so many hexadecimal digits.
func hex(text []byte, digits int) (r rune, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	for _, c := range text[:digits] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// special are bytes that JSON, or a page that has it inside, does not take as they are.
var special = func() (is [256]bool) {
	for b := range is {
		is[b] = b < 0x20 || b >= 0x7f || b == '"' || b == '\\' || b == '<' || b == '>' || b == '&'
	}
	return is
}()

// AppendString appends a string in quotes, as json.Marshal writes it. What needs an escape is rare and left
// to that.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if special[s[i]] {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(dst, `""`...) // every string has a notation
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
