package replay

import (
	"bytes"
	"errors"

	"github.com/weirhq/weir/internal/jsontext"
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
		s := jsontext.Scanner{Text: line, At: at}
		field, ok := s.String()
		if !ok {
			return nil, 0, errQuote
		}
		field, _ = jsontext.Unescape(field)
		return field, s.At, nil
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
