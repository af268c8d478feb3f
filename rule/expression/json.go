package expression

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// maxValues is how many values of a JSON text an expression may read: with each list or
// object that it reads, all members of that one.
const maxValues = 10_000

// jsonText is a JSON text that an expression reads.
type jsonText struct {
	left  int                // how many values may still be read
	wrong *rule.RequestError // why it cannot be read
}

// Why a body cannot be read. Programs differ in what they make of such a body, so that a client could
// have another request served than the one it pays for.
var (
	errUTF8   = &rule.RequestError{Status: http.StatusBadRequest, Reason: "The body of the request is not UTF-8; send JSON in UTF-8."}
	errJSON   = &rule.RequestError{Status: http.StatusBadRequest, Reason: "The body of the request is not valid JSON."}
	errTwice  = &rule.RequestError{Status: http.StatusBadRequest, Reason: "The body of the request has a field twice; send it once."}
	errFold   = &rule.RequestError{Status: http.StatusBadRequest, Reason: "The body of the request has a field whose name differs only in capitals from the one that a rule reads; send that."}
	errValues = &rule.RequestError{Status: http.StatusRequestEntityTooLarge, Reason: "The body of the request has too many values."}
)

// fail returns an error, which ends the evaluation even if the expression does without the value.
func (d *jsonText) fail(wrong *rule.RequestError) ref.Val {
	d.wrong = wrong
	return types.WrapErr(wrong)
}

// value is a value of a JSON text. It is parsed when it is read, one level at a time, so
// that a long text costs little memory.
type value struct {
	text   []byte // valid JSON, without spaces around it
	of     *jsonText
	parsed ref.Val
}

// parse makes a value of a text.
func (d *jsonText) parse(text []byte) ref.Val {
	switch {
	case !utf8.Valid(text):
		return d.fail(errUTF8)
	case !json.Valid(text):
		return d.fail(errJSON)
	}
	d.left = maxValues
	return (&value{text: bytes.TrimSpace(text), of: d}).parse()
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
		return types.String(document.Unquote(v.text[1 : len(v.text)-1]))
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	return number(string(v.text))
}

// object is an object of which a name cannot be read if another one differs from it only in capitals: Go
// and .NET read "N" as "n", most others do not.
type object struct {
	traits.Mapper
	members map[string]any
	folded  map[string]int // how many members have a name, whatever its capitals
	of      *jsonText
}

func (v *value) object() ref.Val {
	members, folded := map[string]any{}, map[string]int{}
	var wrong *rule.RequestError
	s := document.Scanner{Text: v.text}
	s.Object(func(quoted []byte) bool {
		name, member := document.Unquote(quoted), v.member(&s)
		switch {
		case member == nil:
			wrong = errValues
		case members[name] != nil:
			wrong = errTwice
		}
		members[name] = member
		folded[fold(name)]++
		return wrong == nil
	})
	if wrong != nil {
		return v.of.fail(wrong)
	}
	return &object{types.NewStringInterfaceMap(v, members), members, folded, v.of}
}

func (o *object) Find(key ref.Val) (ref.Val, bool) {
	if name, ok := key.(types.String); ok {
		if n := o.folded[fold(string(name))]; n > 1 || n == 1 && o.members[string(name)] == nil {
			return o.of.fail(errFold), false
		}
	}
	return o.Mapper.Find(key)
}

func (o *object) Get(key ref.Val) ref.Val {
	if value, found := o.Find(key); found || value != nil {
		return value
	}
	return o.Mapper.Get(key) // an error
}

func (o *object) Contains(key ref.Val) ref.Val {
	value, found := o.Find(key)
	if value != nil && types.IsError(value) {
		return value
	}
	return types.Bool(found)
}

// fold makes one of all names that encoding/json takes for the same.
func fold(name string) string {
	return strings.Map(func(c rune) rune {
		for next := unicode.SimpleFold(c); ; c, next = next, unicode.SimpleFold(next) {
			if next <= c {
				return unicode.ToLower(next) // of the first of them
			}
		}
	}, name)
}

func (v *value) list() ref.Val {
	var items []any
	s := document.Scanner{Text: v.text}
	read := s.Items('[', ']', func() bool {
		item := v.member(&s)
		items = append(items, item)
		return item != nil
	})
	if !read {
		return v.of.fail(errValues)
	}
	return types.NewDynamicList(v, items)
}

// member takes the next value; it is nil if there are too many.
func (v *value) member(s *document.Scanner) *value {
	if v.of.left--; v.of.left < 0 {
		return nil
	}
	text, _ := s.Value()
	return &value{text: text, of: v.of}
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
