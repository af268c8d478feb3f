package document

import (
	"encoding/json"
	"errors"
	"strings"
)

// json reads JSON. It is nearly YAML, but the standard library also reads the rest,
// such as escapes for characters beyond 16 bits.
func (r *reader) json() *Element {
	at := walker{Place{1, 1}, r.source, 0}
	if err := json.Unmarshal([]byte(r.source), new(ignored)); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at.advance(int(syntax.Offset) - 1)
		}
		r.fault(Syntax, at.Place, "invalid JSON: %v; check the commas, quotes and brackets before it", err)
		return nil
	}
	j := &jsonReader{reader: r, decoder: json.NewDecoder(strings.NewReader(r.source)), at: at}
	j.decoder.UseNumber()
	return j.value(1)
}

// ignored is a value of which nothing is kept.
type ignored struct{}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

// jsonReader reads a source that is known to be valid.
type jsonReader struct {
	*reader
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

func (j *jsonReader) value(depth int) *Element {
	t, at := j.token()
	j.count(at)
	e := &Element{Place: at}
	switch t := t.(type) {
	case json.Delim:
		e.Kind = List
		if t == '{' {
			e.Kind = Mapping
		}
		j.content(e, depth)
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
func (j *jsonReader) content(e *Element, depth int) {
	for j.decoder.More() && !j.stopped {
		if e.Kind == List {
			e.Items = append(e.Items, j.value(depth+1))
			continue
		}
		name := j.value(depth + 1)
		if depth == 1 && j.isGiven(name) {
			e.Members = append(e.Members, Member{name, j.stream()})
			continue
		}
		e.Members = append(e.Members, Member{name, j.value(depth + 1)})
	}
	j.token()
}

// stream reads a value whose items, if it is a list, go to each.
func (j *jsonReader) stream() *Element {
	if rest := strings.TrimLeft(j.source[j.decoder.InputOffset():], " \t\r\n:"); !strings.HasPrefix(rest, "[") {
		return j.value(2)
	}
	_, at := j.token()
	for j.decoder.More() && !j.stopped {
		done := j.item()
		j.give(j.value(3))
		done()
	}
	j.token()
	return &Element{Place: at, Kind: List}
}
