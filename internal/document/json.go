package document

import (
	"encoding/json"
	"errors"
	"strings"
)

// json reads JSON. It is nearly YAML, but the standard library also reads the rest,
// such as escapes for characters beyond 16 bits.
func (r *reader) json() *Element {
	var whole json.RawMessage
	at := walker{Place{1, 1}, r.source, 0}
	if err := json.Unmarshal([]byte(r.source), &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at.advance(int(syntax.Offset) - 1)
		}
		r.fault(Syntax, at.Place, "this is not JSON: %v; look at the commas, quotes and brackets before it", err)
		return nil
	}
	j := &jsonReader{decoder: json.NewDecoder(strings.NewReader(r.source)), at: at}
	j.decoder.UseNumber()
	return j.value()
}

// jsonReader reads a source that is known to be valid.
type jsonReader struct {
	decoder *json.Decoder
	at      walker
}

// token returns the next token and where it begins.
func (j *jsonReader) token() (json.Token, Place) {
	j.at.advance(int(j.decoder.InputOffset()))
	j.at.skip(" \t\r\n,:")
	t, err := j.decoder.Token()
	if err != nil {
		return nil, j.at.Place
	}
	return t, j.at.Place
}

func (j *jsonReader) value() *Element {
	t, at := j.token()
	e := &Element{Place: at}
	switch t := t.(type) {
	case json.Delim:
		e.Kind = List
		if t == '{' {
			e.Kind = Mapping
		}
		j.content(e)
	case string:
		e.Kind, e.Text = Text, t
	case json.Number:
		e.Kind, e.Text = Other, t.String()
		if isInteger(e.Text) {
			e.Kind = Integer
		}
	case bool:
		e = NewTruth(t)
		e.Place = at
	}
	return e
}

// content reads up to the closing bracket.
func (j *jsonReader) content(e *Element) {
	for j.decoder.More() {
		if e.Kind == List {
			e.Items = append(e.Items, j.value())
			continue
		}
		name := j.value()
		e.Members = append(e.Members, Member{name, j.value()})
	}
	j.token()
}
