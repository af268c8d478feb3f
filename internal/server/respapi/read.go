package respapi

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Bounds on one command. A command that is twice as long as what is accepted is still read,
// so that it gets a clear error.
const (
	smallBuffer = 4 << 10 // bytes that every connection has
	maxInline   = smallBuffer
	maxArgs     = 1 << 10
	maxHead     = 32 // bytes of a line that only has a number
)

// errTooLong is that a command does not fit.
var errTooLong = fmt.Errorf("the command has more than %d bytes", maxCommand)

// reader finds commands in what was received. It remembers how far it came, so that the
// work does not depend on the pieces in which a command arrives.
type reader struct {
	buf        []byte
	start, end int // of what was received and not consumed

	pos  int    // from start, where to go on
	left int    // arguments that are missing; none was begun if it is 0
	args []span // from start
}

type span struct{ from, to int32 }

// arg returns an argument; it is valid until the command is consumed.
func (r *reader) arg(i int) []byte {
	a := r.args[i]
	return r.buf[r.start+int(a.from) : r.start+int(a.to)]
}

// consume drops the command that next has found.
func (r *reader) consume() {
	r.start += r.pos
	r.pos, r.left, r.args = 0, 0, r.args[:0]
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
}

// room returns where the next bytes go; nil if the buffer is full.
func (r *reader) room() []byte {
	if r.end == len(r.buf) && r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.start, r.end = 0, r.end-r.start
	}
	return r.buf[r.end:]
}

// resize gives the reader a buffer of another size, with what it has.
func (r *reader) resize(size int) {
	buf := make([]byte, size)
	copy(buf, r.buf[r.start:r.end])
	r.buf, r.start, r.end = buf, 0, r.end-r.start
}

// next reports whether there is a complete command. An error is the client's, and there is
// nothing to go on with. Texts of errors are those of Redis, where it has one.
func (r *reader) next() (bool, error) {
	for r.left == 0 { // otherwise one was begun
		data := r.buf[r.start:r.end]
		if len(data) == 0 {
			return false, nil
		}
		if data[0] != '*' {
			complete, err := r.inline(data)
			if err != nil || !complete || len(r.args) > 0 {
				return complete, err
			}
			r.consume() // an empty line
			continue
		}
		n, size, err := number(data, "multibulk")
		if size == 0 || err != nil {
			return false, err
		}
		if n > maxArgs {
			return false, errors.New("invalid multibulk length")
		}
		r.pos, r.left = size, max(int(n), 0)
		if r.left == 0 { // no command at all, which Redis ignores, too
			r.consume()
		}
	}
	for r.left > 0 {
		data := r.buf[r.start+r.pos : r.end]
		if len(data) == 0 {
			return false, nil
		}
		if data[0] != '$' {
			return false, fmt.Errorf("expected '$', got %q", data[0])
		}
		n, size, err := number(data, "bulk")
		if size == 0 || err != nil {
			return false, err
		}
		switch {
		case n < 0:
			return false, errors.New("invalid bulk length")
		case n > maxCommand || r.pos+size+int(n)+2 > maxCommand:
			return false, errTooLong
		case len(data) < size+int(n)+2:
			return false, nil
		case data[size+int(n)] != '\r' || data[size+int(n)+1] != '\n':
			return false, errors.New("expected CRLF behind a bulk string")
		}
		from := r.pos + size
		r.args = append(r.args, span{int32(from), int32(from + int(n))})
		r.pos = from + int(n) + 2
		r.left--
	}
	return true, nil
}

// number reads a line such as *3 or $12, and returns its size; 0 if it is not complete. Nearly
// all have one digit or two.
func number(data []byte, what string) (n int64, size int, err error) {
	if len(data) >= 5 {
		a, b := data[1]-'0', data[2]-'0'
		if a <= 9 && data[2] == '\r' && data[3] == '\n' {
			return int64(a), 4, nil
		}
		if a <= 9 && b <= 9 && data[3] == '\r' && data[4] == '\n' {
			return int64(a)*10 + int64(b), 5, nil
		}
	}
	head := data[:min(len(data), maxHead)]
	at := bytes.IndexByte(head, '\n')
	if at < 0 {
		if len(head) == maxHead {
			return 0, 0, fmt.Errorf("too big %s count string", what)
		}
		return 0, 0, nil
	}
	digits := head[1:at]
	if len(digits) == 0 || digits[len(digits)-1] != '\r' {
		return 0, 0, fmt.Errorf("invalid %s length", what)
	}
	n, ok := integer(digits[:len(digits)-1])
	if !ok {
		return 0, 0, fmt.Errorf("invalid %s length", what)
	}
	return n, at + 1, nil
}

// integer reads a whole number as Rust's i64::from_str and Go's ParseInt do.
func integer(text []byte) (int64, bool) {
	digits, negative := text, false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	n := uint64(0)
	for i, d := range digits {
		d -= '0'
		if d > 9 || i >= 18 && n > (math.MaxUint64-9)/10 { // 18 digits always fit
			return 0, false
		}
		n = 10*n + uint64(d)
	}
	if negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// inline finds a command that is a line of words, as a person types it with nc or telnet.
func (r *reader) inline(data []byte) (bool, error) {
	at := bytes.IndexByte(data[r.pos:min(len(data), maxInline)], '\n')
	if at < 0 {
		if len(data) >= maxInline {
			return false, errors.New("too big inline request")
		}
		r.pos = len(data)
		return false, nil
	}
	end := r.pos + at
	r.pos = end + 1
	for i := 0; i < end; {
		for i < end && isSpace(data[i]) {
			i++
		}
		from := i
		for i < end && !isSpace(data[i]) {
			if data[i] == '"' || data[i] == '\'' {
				return false, errors.New("quotes are not supported in an inline request; send an array of bulk strings")
			}
			i++
		}
		if i > from {
			if len(r.args) == maxArgs {
				return false, errors.New("too big inline request")
			}
			r.args = append(r.args, span{int32(from), int32(i)})
		}
	}
	return true, nil
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == 0 }
