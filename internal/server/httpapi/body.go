package httpapi

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// Bytes of bodies, beyond what is free, that may be there at the same time.
const (
	openBodies    = 64 << 20             // of calls that anybody may make
	managedBodies = 8 * rule.MaxDocument // of calls that need a token
	decodedBodies = 1 << 20              // of JSON that has arrived: some becomes seventy times as much
)

// bodies read those of a handler's calls.
type bodies struct {
	open, managed *budget.BodyReader
	decoded       *budget.Room
}

func newBodies() bodies {
	return bodies{budget.NewBodyReader(openBodies), budget.NewBodyReader(managedBodies), budget.New(decodedBodies)}
}

// maxSmallBody is the longest body that is neither rules nor a check.
const maxSmallBody = 4 << 10

// maxWait is how long a call waits for room for what it decodes.
const maxWait = 2 * time.Second

// body reads a body of at most so many bytes. The room that it takes is given back before the answer is
// written.
func (c *call) body(most int64) ([]byte, error) {
	body, err := c.readBody(most, nil)
	if err == nil && most < rule.MaxDocument { // rules make room for documents by themselves
		err = c.makeRoom(int64(len(body)))
	}
	return body, err
}

// makeRoom waits for room to decode so many bytes.
func (c *call) makeRoom(n int64) error {
	if n <= budget.Free {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), maxWait)
	defer cancel()
	if c.bodies.decoded.Take(ctx, n) != nil {
		return c.unread(budget.ErrBusy, 0)
	}
	c.releases = append(c.releases, func() { c.bodies.decoded.Give(n) })
	return nil
}

// readBody reads a body, into the memory if it is short.
func (c *call) readBody(most int64, memory []byte) ([]byte, error) {
	reader := c.bodies.open
	if c.logged {
		reader = c.bodies.managed
	}
	body, release, err := reader.Read(budget.BodySource{Writer: c.ResponseWriter, Request: c.r, Client: c.client, Memory: memory}, most)
	if len(body) > budget.Free {
		c.releases = append(c.releases, release)
	} else {
		release()
	}
	return body, c.unread(err, most)
}

// release gives back the room of the body, which is not read any more.
func (c *call) release() {
	for _, release := range c.releases {
		release()
	}
	c.releases = nil
}

// unread is why a body of at most so many bytes was not read.
func (c *call) unread(err error, most int64) error {
	if err == nil {
		return nil
	}
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		return fault.TooLarge.Of("The body has more than %d bytes; send a smaller one.", most).Coded("", "max", most)
	case errors.Is(err, budget.ErrBusy):
		return fault.Busy.Of("Other calls use all the memory for large bodies; try again.").After(time.Second).Coded("memory-busy")
	case errors.Is(err, budget.ErrSlow):
		return fault.BadBody.Of("The body came too slowly; send it again.")
	}
	return fault.BadBody.Of("The body ended before it was complete; send it again.")
}

// decode reads the body of a call that takes no parameters.
func (c *call) decode(most int64, into any) error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	body, err := c.body(most)
	if err != nil {
		return err
	}
	return decode(body, into)
}

// taking makes a handler of one that takes a body of at most so many bytes, and no
// parameters. A body that can tell what is wrong with it is asked.
func taking[T any](most int64, serve func(*Handler, *call, *T) (any, error)) handler {
	return func(h *Handler, c *call) (any, error) {
		want := new(T)
		err := c.decode(most, want)
		if v, ok := any(want).(interface{ validate() error }); ok && err == nil {
			err = v.validate()
		}
		if err != nil {
			return nil, err
		}
		return serve(h, c, want)
	}
}

// decode reads one JSON object into a struct, and nothing behind it. To be strict is
// kind: a field that is silently ignored is a limit that silently does not apply.
func decode(body []byte, into any) error {
	known := func() []string { return namesOf(reflect.TypeOf(into).Elem()) }
	if !utf8.Valid(body) {
		return fault.BadBody.Of("The body is not valid UTF-8; send JSON in UTF-8.")
	}
	content := bytes.TrimLeft(body, " \t\r\n")
	if len(content) == 0 {
		return fault.BadBody.Of("The body is empty; send a JSON object, such as {%q: …}.", known()[0])
	}
	if content[0] != '{' {
		return fault.BadBody.Of("The body is not a JSON object; send one, such as {%q: …}.", known()[0])
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return diagnose(body, err, into, known())
	}
	if rest := bytes.TrimLeft(body[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fault.BadBody.Of("The body continues after the JSON object, at byte %d; send only one object.", len(body)-len(rest)+1)
	}
	return strict(body, into)
}

// diagnose says what is wrong with a body that could not be decoded.
func diagnose(body []byte, err error, into any, known []string) error {
	syntax, malformed := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.BadBody.Of("The JSON ends too early; check its brackets and quotes.")
	case malformed:
		return fault.BadBody.Of("The body is not valid JSON at byte %d: %s; check the commas, quotes and brackets before it.", syntax.Offset, syntax.Error())
	}
	for name := range fieldsIn(body) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			return unknownName("field", name, known)
		}
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := inJSON(kind.Field)
		return fault.BadField.Of("%s cannot be %s %s; send %s.", field, article(kind.Value), kind.Value, wanted(kind.Type)).In(field)
	}
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return invalid
	}
	if quoted, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		if name, err := strconv.Unquote(quoted); err == nil { // of an object further inside
			return unknownName("field", name, namesIn(reflect.TypeOf(into)))
		}
	}
	return fault.BadBody.Of("The body is invalid; docs/reference/api.md describes its fields.")
}

// fieldsIn are the names in an object, one after the other: there may be very many.
func fieldsIn(body []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		d := json.NewDecoder(bytes.NewReader(body))
		_, err := d.Token() // the brace
		var value json.RawMessage
		for err == nil && d.More() {
			var name json.Token
			if name, err = d.Token(); err != nil || !yield(fmt.Sprint(name)) {
				return
			}
			err = d.Decode(&value)
		}
	}
}

// unknownName is a field or parameter that nothing knows, with the one that was
// probably meant.
func unknownName(what, name string, known []string) *fault.Fault {
	if near := notation.Nearest(name, known); near != "" {
		return fault.BadField.Of("There is no %s %q; did you mean %s?", what, manage.Clip(name), near).In(manage.Clip(name)).Coded("unknown-name", "name", name, "near", near)
	}
	if len(known) == 0 {
		return fault.BadField.Of("There is no %s %q; leave it out.", what, manage.Clip(name)).In(manage.Clip(name)).Coded("unknown-name", "name", name)
	}
	return fault.BadField.Of("There is no %s %q; use %s.", what, manage.Clip(name), strings.Join(known, ", ")).In(manage.Clip(name)).Coded("unknown-name", "name", name)
}

func article(word string) string {
	if strings.ContainsAny(word[:min(1, len(word))], "aeiou") {
		return "an"
	}
	return "a"
}

// inJSON is the path of a field as a client writes it: without the structs of which a
// type is composed, which are in no JSON.
func inJSON(path string) string {
	words := strings.Split(path, ".")
	words = slices.DeleteFunc(words, func(word string) bool { return word != "" && 'A' <= word[0] && word[0] <= 'Z' })
	return strings.Join(words, ".")
}

// wanted says what JSON a Go type is made of.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	if t == reflect.TypeFor[unitCount]() {
		return "a whole number; money counts in millionths, so 1.50 dollars are 1500000"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Map:
		return "an object of strings"
	case reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "a list"
	}
	return "a whole number"
}

// namesIn are the fields of the objects that stand in the fields of a type.
func namesIn(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name := nameOf(f); name != "" {
			names = append(names, name)
		}
		names = append(names, namesIn(f.Type)...)
	}
	return names
}

// namesOf are the fields of a struct, in their order.
func namesOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// nameOf is what a field is called in JSON, "" if it is not there.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// strict reports a name that an object has twice, and a field in other letters than its
// own. The library takes the last of two and ignores case; a proxy that has read the
// same body before, to decide whether to forward it, may have taken the other. The body
// is one that the library has read, whose tokens would take several times as long, and more memory.
func strict(body []byte, into any) error {
	return strictValue(&document.Scanner{Text: body}, reflect.TypeOf(into))
}

// strictValue reads a value that goes into a type, nil if there is none of its own.
func strictValue(s *document.Scanner, t reflect.Type) (err error) {
	kind := s.Peek()
	if kind != '{' && kind != '[' {
		s.Value()
		return nil
	}
	fields, values := contents(t)
	if kind == '[' {
		s.Items('[', ']', func() bool {
			err = strictValue(s, values)
			return err == nil
		})
		return err
	}
	var seen map[string]bool
	s.Object(func(quoted []byte) bool {
		name, known := document.Unquote(quoted), true
		if fields != nil {
			values, known = fields[name]
		}
		switch {
		case !known:
			err = unknownName("field", name, slices.Sorted(maps.Keys(fields)))
		case seen[name]:
			err = fault.Field(manage.Clip(name), "given twice; send it once.").Coded("twice")
		default:
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[name] = true
			err = strictValue(s, values)
		}
		return err == nil
	})
	return err
}

// contents are the fields of a struct, or the type of the values in a map or a list. There are neither in a
// type that reads itself.
func contents(t reflect.Type) (fields map[string]reflect.Type, values reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil, reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()), reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
	case t.Kind() == reflect.Map, t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return nil, t.Elem()
	case t.Kind() == reflect.Struct:
		return fieldsOf(t), nil
	}
	return nil, nil
}

// structs has the fields of the structs that bodies are read into.
var structs sync.Map

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, found := structs.Load(t); found {
		return fields.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(f); name != "" {
			fields[name] = f.Type
		}
	}
	structs.Store(t, fields)
	return fields
}
