package ruleedit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	"pgregory.net/rapid"
)

func TestReadDraft(t *testing.T) {
	for _, c := range []struct{ name, source, yaml, json string }{
		{"nothing", "", "", "{}"},
		{"comments", "# later\n", "# later\n", "{}"},
		{"YAML stays as it is", "key:  ip # by address\nid: a", "key:  ip # by address\nid: a", `{"key":"ip","id":"a"}`},
		{"in brackets", "{id: a, cost: 2}", "{id: a, cost: 2}", `{"id":"a","cost":2}`},
		{"JSON becomes YAML", `{"id": "a", "limits": ["1/1s", "5/1m"], "match": {"path": "/x"}}`, "id: a\nlimits: [1/1s, 5/1m]\nmatch:\n  path: /x\n", `{"id":"a","limits":["1/1s","5/1m"],"match":{"path":"/x"}}`},
		{"what no rule has", "id: 7\nkye: [1.5, yes]\n", "id: 7\nkye: [1.5, yes]\n", `{"id":7,"kye":[1.5,"yes"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := ruleedit.ReadDraft([]byte(c.source))
			if err != nil || string(d.Source) != c.yaml || string(d.Rule) != c.json {
				t.Errorf("%q and %s, %v", d.Source, d.Rule, err)
			}
		})
	}
	for _, source := range []string{"id: a: b", "[1]", "word", "id: *a", "a: 1\na: 2", "{", "\xff"} {
		if _, err := ruleedit.ReadDraft([]byte(source)); !errors.Is(err, ruleedit.ErrUnreadable) {
			t.Errorf("%q: %v", source, err)
		}
		if _, err := ruleedit.AmendDraft([]byte(source), []byte("{}")); !errors.Is(err, ruleedit.ErrUnreadable) {
			t.Errorf("%q: %v", source, err)
		}
	}
	for _, now := range []string{"", "[]", "null", `"x"`, "id: a", `{"id":`} {
		if _, err := ruleedit.AmendDraft([]byte("id: a"), []byte(now)); !errors.Is(err, ruleedit.ErrNoObject) {
			t.Errorf("%q: %v", now, err)
		}
	}
}

const commented = `# Logins. Ask Ann.
id: login   # do not rename
match:
  method: POST   # only these
  # the old page, too
  path: /login
key: ip
limit: 5/x   # was 3
# the end
`

func TestAmendDraft(t *testing.T) {
	for _, c := range []struct{ name, source, now, want string }{
		{"nothing is new", commented, `{"key":"ip","id":"login","limit":"5/x","match":{"path":"/login","method":"POST"}}`, commented},
		{"a value", commented, `{"id":"login","match":{"method":"POST","path":"/login"},"key":["ip","user"],"limit":"5/1m"}`,
			strings.NewReplacer("key: ip", "key: [ip, user]", "5/x ", "5/1m").Replace(commented)},
		{"a value inside", commented, `{"id":"login","match":{"method":"POST","path":["/login","/in"],"host":"a.example"},"key":"ip","limit":"5/x"}`,
			strings.NewReplacer("  # the old", "  host: a.example\n  # the old", "path: /login", "path: [/login, /in]").Replace(commented)},
		{"a field more", commented, `{"mode":"shadow","id":"login","match":{"method":"POST","path":"/login"},"key":"ip","limit":"5/x","burst":null}`,
			strings.Replace(commented, "# the end", "mode: shadow\n# the end", 1)},
		{"a field less", commented, `{"id":"login","match":{"method":"POST"},"key":"ip","limit":"5/x"}`,
			strings.Replace(commented, "  # the old page, too\n  path: /login\n", "  # the old page, too\n", 1)},
		{"a field that comes first", "key: ip # why\n", `{"key":"ip","id":"a"}`, "id: a\nkey: ip # why\n"},
		{"a name that no rule has", "id: a\nkye: ip # why\n", `{"id":"b","kye":"ip"}`, "id: b\nkye: ip # why\n"},
		{"the first field", "# todo\n", `{"id":"a","limit":""}`, "# todo\nid: a\nlimit: \"\"\n"},
		{"the first of all", "", `{"limit":"1/1s","id":"a"}`, "id: a\nlimit: 1/1s\n"},
		{"in brackets", "{id: a, key: ip} # x", `{"id":"a","key":"user"}`, "id: a\nkey: user\n"},
		{"JSON", `{"id":"a"}`, `{"id":"b"}`, "id: b\n"},
		{"no line break at the end", "id: a\nkey: ip", `{"id":"a","key":"ip","limit":"1/1s"}`, "id: a\nkey: ip\nlimit: 1/1s\n"},
		{"line breaks of Windows", "id: a # x\r\nkey: ip\r\n", `{"id":"b","key":"ip"}`, "id: b # x\r\nkey: ip\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := ruleedit.AmendDraft([]byte(c.source), []byte(c.now))
			if err != nil || string(d.Source) != c.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, d.Source, c.want)
			}
		})
	}
}

// Whatever the draft was and shall be, it says what it shall, and so does its JSON.
func TestAmendDraftSaysWhatItShall(t *testing.T) {
	scalar := rapid.OneOf(
		rapid.Just[any]("x # y"), rapid.Just[any]("- a"), rapid.Just[any]("line\nbreak\n"), rapid.Just[any](true), rapid.Just[any](7.0), rapid.Just[any]("7"), rapid.Just[any](""))
	values := func(inner *rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"path", "method", "pro", "user:al ice", "#"}), inner, 1, 3), func(m map[string]any) any { return m }))
	}
	rules := rapid.MapOfN(rapid.SampledFrom([]string{"id", "match", "key", "limit", "tiers", "deny", "kye"}), values(values(scalar)), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) []byte {
			out, err := json.Marshal(rules.Draw(t, name))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		first, err := ruleedit.ReadDraft(text("first"))
		if err != nil {
			t.Fatal(err)
		}
		now := text("now")
		second, err := ruleedit.AmendDraft(first.Source, now)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ruleedit.ReadDraft(second.Source)
		if err != nil || !sameJSON(t, again.Rule, now) || !sameJSON(t, second.Rule, now) {
			t.Fatalf("%v: %s became\n%s\nwant %s", err, first.Source, second.Source, now)
		}
	})
}

func sameJSON(t *rapid.T, a, b []byte) bool {
	var x, y map[string]any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// A draft in the far right of its lines does not repeat its indentation on each new one.
func TestAmendDraftFarRight(t *testing.T) {
	const size = 200_000
	source := strings.Repeat(" ", size) + "a: 1\n"
	for name, now := range map[string]string{
		"one long field": `{"a": 2, "b": [` + strings.Repeat("0, ", 5000) + `0]}`,
		"many fields":    `{"a": 2` + manyFields(5000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, err := ruleedit.AmendDraft([]byte(source), []byte(now))
			runtime.ReadMemStats(&after)
			if err != nil || !strings.HasPrefix(string(d.Source), "a: 2\n") {
				t.Errorf("%.40q, %v", d.Source, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
				t.Errorf("it took %d bytes", n)
			}
		})
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `, "b%d": 0`, i)
	}
	return b.String()
}

// A draft of very many values is not written again: that would take hundreds of bytes for
// each of its own.
func TestDraftOfManyValues(t *testing.T) {
	long := `{"a": [` + strings.Repeat("0,", 450_000) + `0]}`
	if _, err := ruleedit.ReadDraft([]byte(long)); !errors.Is(err, ruleedit.ErrUnreadable) {
		t.Error(err)
	}
	if _, err := ruleedit.AmendDraft([]byte("a: 1"), []byte(long)); !errors.Is(err, ruleedit.ErrNoObject) {
		t.Error(err)
	}
	if _, err := ruleedit.ReadDraft([]byte(`{"id": "a"` + manyFields(30_000) + `}`)); err != nil {
		t.Error(err)
	}
}
