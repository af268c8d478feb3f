package document

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

var texts = []string{
	`{}`, ` [ ] `, `null`, `"x"`, `"a\"b"`, `"\\"`, `"\u00e9\ud83d\ude00\ud800x\ud800\u0041\udc00"`, `"\b\f\n\r\t\/"`, `[1,-2.5E+3 , true,[],{}]`,
	`{"a":{"b":[{"c":"}\"]"}]},"\u0061":"x","":0}`, "{\"a\" :\t[ 1 ,\r\n{ } ] , \"b\" : \"]\" }", `[[[[]]]]`, `"é<&>"`,
}

// read makes of a valid text what encoding/json makes of it, but for numbers, which stay texts.
func read(s *Scanner) any {
	switch s.Peek() {
	case '{':
		all := map[string]any{}
		s.Object(func(name []byte) bool {
			all[Unquote(name)] = read(s)
			return true
		})
		return all
	case '[':
		all := []any{}
		s.Items('[', ']', func() bool {
			all = append(all, read(s))
			return true
		})
		return all
	case '"':
		text, _ := s.String()
		return Unquote(text)
	}
	switch word, _ := s.Word(); string(word) {
	case "true", "false":
		return string(word) == "true"
	case "null":
		return nil
	default:
		return json.Number(word)
	}
}

func sameAsLibrary(t *testing.T, text []byte) {
	s := Scanner{Text: text}
	if !json.Valid(text) {
		s.Value() // it ends
		return
	}
	value, ok := s.Value()
	if !ok || !s.AtEnd() || !bytes.Equal(value, bytes.TrimSpace(text)) {
		t.Errorf("the value in %q is %q, %v", text, value, ok)
	}
	var want any
	d := json.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(text, []byte("\ufffd"))))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		return // such as numbers and depths that it does not take
	}
	s = Scanner{Text: bytes.ToValidUTF8(text, []byte("\ufffd"))}
	got := read(&s)
	mine, _ := json.Marshal(got)
	theirs, _ := json.Marshal(want)
	if !bytes.Equal(mine, theirs) || !s.AtEnd() {
		t.Errorf("%q is read as %s, want %s", text, mine, theirs)
	}
}

func TestScanner(t *testing.T) {
	for _, text := range texts {
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON", text)
		}
		sameAsLibrary(t, []byte(text))
	}
	for _, text := range []string{``, `{`, `[1`, `[1 2]`, `{"a"}`, `{"a":}`, `{a:1}`, `[,]`, `{"a":1,}`, `{"a":1`, `"x`, `"\"`} {
		s := Scanner{Text: []byte(text)}
		value := func() bool { _, ok := s.Value(); return ok }
		ok := s.Object(func([]byte) bool { return value() })
		if s.At = 0; s.Peek() == '[' {
			ok = s.Items('[', ']', value)
		} else if s.Peek() == '"' {
			_, ok = s.String()
		}
		if ok {
			t.Errorf("%s is read", text)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(sameAsLibrary)
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{`plain`: "plain", `\x41\x4z\q`: "Ax4zq", `a\u12z`: "", `\`: `\`, `\u004`: "", `\u00e9`: "é"} {
		if got, ok := Unescape([]byte(text)); ok != (want != "") || ok && string(got) != want {
			t.Errorf("%s is %q, %v", text, got, ok)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "plain text", `"`, `\`, "<a>&", "é", "\x00\x7f\xff", "\u2028"} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendString([]byte("x"), s); !slices.Equal(got, append([]byte("x"), want...)) {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}
