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
// own. The library takes the last of two and ignores case; whoever has read the same
// body before, in order to decide whether to pass it on, may have taken the other. The
// body is one that the library has read.
func strict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return walk(d, reflect.TypeOf(into))
}

// walk goes through a value that goes into a type, nil if there is none of its own.
func walk(d *json.Decoder, t reflect.Type) error {
	begin, _ := d.Token() // no error: it was read before
	if begin != json.Delim('{') && begin != json.Delim('[') {
		return nil
	}
	fields, inside := contents(indirect(t))
	seen := map[string]bool{}
	for d.More() {
		if begin == json.Delim('{') {
			token, _ := d.Token()
			name, _ := token.(string)
			if fields != nil {
				var known bool
				if inside, known = fields[name]; !known {
					return unknownName("field", name, slices.Sorted(maps.Keys(fields)))
				}
			}
			if seen[name] {
				return badField.of("%s: it is there twice; send it once.", manage.Clip(name)).in(manage.Clip(name))
			}
			seen[name] = true
		}
		if err := walk(d, inside); err != nil {
			return err
		}
	}
	_, _ = d.Token() // the end
	return nil
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
