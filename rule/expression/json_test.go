package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// plain makes of a value what encoding/json would.
func plain(v ref.Val) any {
	switch v := v.(type) {
	case traits.Mapper:
		all := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			name := it.Next()
			all[string(name.(types.String))] = plain(v.Get(name))
		}
		return all
	case traits.Lister:
		all := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			all = append(all, plain(it.Next()))
		}
		return all
	case types.Int:
		return float64(v)
	case types.Null:
		return nil
	}
	return v.Value()
}

// sameAsDecoder compares what we read with what encoding/json reads.
func sameAsDecoder(t *testing.T, text []byte) {
	var want any
	err := json.Unmarshal(text, &want)
	if _, large := errors.AsType[*json.UnmarshalTypeError](err); large {
		return // we read such a number as infinite
	}
	var d jsonText
	got := d.parse(text)
	if err != nil && !types.IsError(got) {
		t.Errorf("%s is read as %v, although %v", text, got, err)
	}
	if err != nil || bytes.Count(text, []byte(","))+bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) >= maxValues {
		return
	}
	all := plain(got)
	if d.wrong == errUTF8 || d.wrong == errTwice || d.wrong == errFold {
		return // which the decoder takes
	}
	if d.wrong != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%s is read as %v (%v), want %v", text, all, d.wrong, want)
	}
}

var jsonTexts = []string{
	`{}`, `[]`, `null`, `true`, `"x"`, ` 1 `, `-0`, `-1.5e3`, `[1,2 , 3]`, `{"a":{"b":[{"c":"}"}]}}`, `{"a\"":"\\","b":"\u00e9\n"}`, "[\"\xff\"]",
	`{"a":1,"a":2}`, `[[[[]]],{"":{}}]`, "{\"a\" :\t[ 1 ,\r\n{ } ] , \"b\" : \"]\" }", `[1e400]`, `[9223372036854775807,9223372036854775808,0.1,1e2]`, `{"a"}`, `[1,]`, ``,
}

func TestJSON(t *testing.T) {
	for _, text := range jsonTexts {
		sameAsDecoder(t, []byte(text))
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(sameAsDecoder)
}

// A long text costs no more memory than what is read of it.
func TestJSONMemory(t *testing.T) {
	long := []byte(`{"a": [` + strings.Repeat("{},", 400_000) + `0], "b": "` + strings.Repeat("x", 500_000) + `", "c": 7}`)
	allocated := testing.AllocsPerRun(1, func() {
		if c := new(jsonText).parse(long).(traits.Mapper).Get(types.String("c")); c != types.Int(7) {
			t.Errorf("c is %v", c)
		}
	})
	if allocated > 50 {
		t.Errorf("%v allocations", allocated)
	}
	if a := new(jsonText).parse(long).(traits.Mapper).Get(types.String("a")); !types.IsError(a) {
		t.Errorf("400,001 values are read")
	}
}

// Names that encoding/json takes for the same are the same when they are folded.
func TestFold(t *testing.T) {
	for _, name := range []string{"n", "N", "max_tokens", "MAX_TO\u212aEN\u017f", "\u0130", "\u03c3\u03c2\u03a3", "straße", ""} {
		for _, other := range []string{"n", "Max_Tokens", "\u03c3\u03c3\u03c3", "STRAßE", "STRASSE", ""} {
			if same := fold(name) == fold(other); same != strings.EqualFold(name, other) {
				t.Errorf("%q and %q: %v", name, other, same)
			}
		}
	}
}
