package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxValues is how many values of a JSON text an expression may read: with each list or
// object that it reads, all members of that one.
const maxValues = 10_000

var errValues = errors.New("the JSON has too many values")

// value is a value of a JSON text. It is parsed when it is read, one level at a time, so
// that a long text costs little memory.
type value struct {
	text   []byte // valid JSON, without spaces around it
	left   *int   // how many values may still be read
	parsed ref.Val
}

// parseJSON makes a value of a text. What is no JSON is an object without members, so
// that has() can be asked of it.
func parseJSON(text []byte) ref.Val {
	if len(text) == 0 || !json.Valid(text) {
		text = []byte("{}")
	}
	left := maxValues
	return (&value{text: bytes.TrimSpace(text), left: &left}).parse()
}

// NativeToValue implements types.Adapter.
func (v *value) NativeToValue(of any) ref.Val {
	if of, ok := of.(*value); ok {
		return of.parse()
	}
	return types.DefaultTypeAdapter.NativeToValue(of)
}

func (v *value) parse() ref.Val {
	if v.parsed == nil {
		v.parsed = v.read()
	}
	return v.parsed
}

func (v *value) read() ref.Val {
	switch v.text[0] {
	case '{':
		return v.object()
	case '[':
		return v.list()
	case '"':
		return types.String(unquote(v.text))
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	return number(string(v.text))
}

func (v *value) object() ref.Val {
	members := map[string]any{}
	for rest := next(v.text[1:]); rest[0] != '}'; {
		name := rest[:skip(rest)]
		rest = next(rest[len(name):]) // behind the colon
		member := v.member(&rest)
		if member == nil {
			return types.WrapErr(errValues)
		}
		members[unquote(name)] = member // the last of a name counts, as almost everywhere
	}
	return types.NewStringInterfaceMap(v, members)
}

func (v *value) list() ref.Val {
	var items []any
	for rest := next(v.text[1:]); rest[0] != ']'; {
		item := v.member(&rest)
		if item == nil {
			return types.WrapErr(errValues)
		}
		items = append(items, item)
	}
	return types.NewDynamicList(v, items)
}

// member takes a value from the start of a text.
func (v *value) member(rest *[]byte) *value {
	if *v.left--; *v.left < 0 {
		return nil
	}
	end := skip(*rest)
	m := &value{text: (*rest)[:end], left: v.left}
	*rest = next((*rest)[end:])
	return m
}

// next skips spaces, and a comma or colon between them.
func next(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n,:") }

// skip returns where the value at the start of a text ends.
func skip(text []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch text[i] {
		case '"':
			i += stringEnd(text[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				n := bytes.IndexAny(text, " \t\r\n,:]}")
				if n < 0 {
					n = len(text)
				}
				return n
			}
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// stringEnd returns where the string at the start of a text ends.
func stringEnd(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

func unquote(text []byte) string {
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(text, &s) // it is valid
	return s
}

// number is an integer if it can be one, however it is written, so that it can be added to
// others.
func number(text string) ref.Val {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return types.Int(n)
	}
	f, _ := strconv.ParseFloat(text, 64) // what is out of range is infinite
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return types.Int(int64(f))
	}
	return types.Double(f)
}
