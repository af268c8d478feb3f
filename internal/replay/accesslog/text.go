package accesslog

import (
	"bytes"
	"errors"
)

var (
	errQuote   = errors.New("a quote is not closed; the line may be cut off")
	errBracket = errors.New("a bracket is not closed; the line may be cut off")
)

// parseText splits a line into fields: words, and what stands in quotes or
// brackets. Only as many are looked at as somebody wants.
func (p *Parser) parseText(line []byte, format Format) error {
	places := p.text[format]
	at := 0
	for position := 0; position < len(places); position++ {
		for at < len(line) && line[at] == ' ' {
			at++
		}
		if at == len(line) {
			return nil
		}
		field, end, err := textField(line, at)
		if err != nil {
			return err
		}
		at = end
		for _, s := range places[position] {
			p.found[s] = field
		}
	}
	return nil
}

// textField returns the field that begins at a place, and where it ends.
func textField(line []byte, at int) (field []byte, end int, err error) {
	switch line[at] {
	case '"':
		return quotedField(line, at+1)
	case '[':
		n := bytes.IndexByte(line[at:], ']')
		if n < 0 {
			return nil, 0, errBracket
		}
		return line[at+1 : at+n], at + n + 1, nil
	}
	n := bytes.IndexByte(line[at:], ' ')
	if n < 0 {
		n = len(line) - at
	}
	return line[at : at+n], at + n, nil
}

// quotedField finds the closing quote, and makes plain what is escaped before it.
func quotedField(line []byte, at int) (field []byte, end int, err error) {
	n := bytes.IndexByte(line[at:], '"')
	if n < 0 {
		return nil, 0, errQuote
	}
	if bytes.IndexByte(line[at:at+n], '\\') < 0 {
		return line[at : at+n], at + n + 1, nil
	}
	to := at
	for i := at; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			return line[at:to], i + 1, nil
		case c == '\\' && i+1 < len(line):
			c, i = unescape(line, i+1)
		}
		line[to] = c
		to++
	}
	return nil, 0, errQuote
}

// unescape reads what follows a backslash: xHH as nginx and Apache write bytes, or a
// character. It returns where that ends.
func unescape(line []byte, at int) (byte, int) {
	switch c := line[at]; c {
	case 'x':
		if at+2 < len(line) {
			high, low := hex(line[at+1]), hex(line[at+2])
			if high < 16 && low < 16 {
				return high<<4 | low, at + 2
			}
		}
		return c, at
	case 'n':
		return '\n', at
	case 't':
		return '\t', at
	case 'r':
		return '\r', at
	default:
		return c, at
	}
}

// hex is the value of a digit, or 16.
func hex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
