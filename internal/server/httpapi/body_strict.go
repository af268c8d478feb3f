package httpapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir/internal/manage"
)

// strict reports a name that an object has twice, and a field in other letters than its
// own. The library takes the last of two and ignores case; whoever has read the same
// body before, in order to decide whether to pass it on, may have taken the other. The
// body is one that the library has read.
func strict(body []byte, into any) *Problem {
	w := walker{rest: body}
	return w.value(reflect.TypeOf(into))
}

// walker goes through JSON that is known to be valid.
type walker struct{ rest []byte }

// next skips white space and returns the byte behind it.
func (w *walker) next() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n")
	return w.rest[0]
}

// value reads a value that goes into a type, nil if there is none of its own.
func (w *walker) value(t reflect.Type) *Problem {
	t = indirect(t)
	switch w.next() {
	case '{':
		return w.object(t)
	case '[':
		return w.list(t)
	case '"':
		w.text()
	default:
		w.rest = w.rest[bytes.IndexAny(w.rest, ",]} \t\r\n"):]
	}
	return nil
}

func (w *walker) object(t reflect.Type) *Problem {
	fields, values := contents(t)
	var seen names
	for w.rest = w.rest[1:]; w.next() != '}'; {
		if w.rest[0] == ',' {
			w.rest = w.rest[1:]
			continue
		}
		name := w.text()
		inside, known := fields[name]
		switch {
		case fields == nil:
			inside = values
		case !known:
			return unknownName("field", name, slices.Sorted(maps.Keys(fields)))
		}
		if !seen.add(name) {
			return badField.of("%s: it is there twice; send it once.", manage.Clip(name)).in(manage.Clip(name))
		}
		w.next() // the colon
		w.rest = w.rest[1:]
		if p := w.value(inside); p != nil {
			return p
		}
	}
	w.rest = w.rest[1:]
	return nil
}

func (w *walker) list(t reflect.Type) *Problem {
	_, values := contents(t)
	for w.rest = w.rest[1:]; w.next() != ']'; {
		if w.rest[0] == ',' {
			w.rest = w.rest[1:]
			continue
		}
		if p := w.value(values); p != nil {
			return p
		}
	}
	w.rest = w.rest[1:]
	return nil
}

// text reads a string.
func (w *walker) text() string {
	w.next()
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
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	structs.Store(t, fields)
	return fields
}

// names are those of an object: few, as a rule.
type names struct {
	few  []string
	many map[string]struct{}
}

// add reports whether a name was not there.
func (n *names) add(name string) bool {
	const most = 16
	if len(n.few) < most {
		twice := slices.Contains(n.few, name)
		n.few = append(n.few, name)
		return !twice
	}
	if n.many == nil {
		n.many = map[string]struct{}{}
		for _, f := range n.few {
			n.many[f] = struct{}{}
		}
	}
	before := len(n.many)
	n.many[name] = struct{}{}
	return len(n.many) > before
}
