package httpapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/manage"
)

// strict reports a name that an object has twice, and a field in other letters than its
// own. The library takes the last of two and ignores case; a proxy that has read the
// same body before, to decide whether to forward it, may have taken the other. The body
// is one that the library has read.
func strict(body []byte, into any) error {
	w := walker{rest: body}
	return w.value(reflect.TypeOf(into))
}

// walker goes through JSON that is known to be valid. The library's tokens would take
// several times as long, and more memory.
type walker struct{ rest []byte }

// next skips white space and returns the byte behind it.
func (w *walker) next() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n")
	return w.rest[0]
}

// value reads a value that goes into a type, nil if there is none of its own.
func (w *walker) value(t reflect.Type) error {
	switch w.next() {
	case '{', '[':
		return w.inside(indirect(t))
	case '"':
		w.text()
	default:
		w.rest = w.rest[bytes.IndexAny(w.rest, ",]} \t\r\n"):]
	}
	return nil
}

// inside reads an object or a list.
func (w *walker) inside(t reflect.Type) error {
	fields, values := contents(t)
	var seen map[string]bool
	object := w.rest[0] == '{'
	w.rest = w.rest[1:]
	for b := w.next(); b != '}' && b != ']'; b = w.next() {
		if b == ',' {
			w.rest = w.rest[1:]
			continue
		}
		if object {
			name := w.text()
			if fields != nil {
				var known bool
				if values, known = fields[name]; !known {
					return unknownName("field", name, slices.Sorted(maps.Keys(fields)))
				}
			}
			if seen[name] {
				return badField.of("%s: given twice; send it once.", manage.Clip(name)).in(manage.Clip(name)).coded("twice")
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[name] = true
			w.next() // the colon
			w.rest = w.rest[1:]
		}
		if err := w.value(values); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

// text reads a string.
func (w *walker) text() string {
	end := 1
	for ; w.rest[end] != '"'; end++ {
		if w.rest[end] == '\\' {
			end++
		}
	}
	quoted := w.rest[:end+1]
	w.rest = w.rest[end+1:]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:end])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it was read before
	return s
}

// indirect is the type without pointers, and nil if the type reads itself.
func indirect(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	return t
}

// contents are the fields of a struct, or the type of the values in a map or a list.
func contents(t reflect.Type) (fields map[string]reflect.Type, values reflect.Type) {
	switch {
	case t == nil:
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
