package httpapi

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/internal/rules/manage"
)

// strict reports a name that an object has twice, and a field in other letters than its
// own. The library takes the last of two and ignores case; a proxy that has read the
// same body before, to decide whether to forward it, may have taken the other. The body
// is one that the library has read, whose tokens would take several times as long, and more memory.
func strict(body []byte, into any) error {
	return strictValue(&jsontext.Scanner{Text: body}, reflect.TypeOf(into))
}

// strictValue reads a value that goes into a type, nil if there is none of its own.
func strictValue(s *jsontext.Scanner, t reflect.Type) (err error) {
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
		name, known := jsontext.Unquote(quoted), true
		if fields != nil {
			values, known = fields[name]
		}
		switch {
		case !known:
			err = unknownName("field", name, slices.Sorted(maps.Keys(fields)))
		case seen[name]:
			err = fault.BadField.Of("%s: given twice; send it once.", manage.Clip(name)).In(manage.Clip(name)).Coded("twice")
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
