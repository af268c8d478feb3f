package clients

import (
	"testing"

	"github.com/weirhq/weir/rule"
)

func client(t testing.TB, text string) rule.Client {
	t.Helper()
	c, problems := rule.ReadClient("", []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t testing.TB, text string) Change { t.Helper(); return Change{Client: client(t, text)} }

// A client may come before its parent, and each change has an outcome of its own.
func TestApply(t *testing.T) {
	r := New(Options{})
	got, err := r.Apply(t.Context(), "ann", []Change{
		put(t, `{"client": "user:ann", "parent": "org:acme", "tier": "pro"}`),
		put(t, `{"client": "user:bob", "parent": "org:nobody"}`),
		put(t, `{"client": "org:acme", "limits": {"api": ["5/1m", "9/1h"]}}`),
	})
	if err != nil || got[0].Err != nil || got[1].Err == nil || got[2].Err != nil || !got[2].Created {
		t.Fatal(got, err)
	}
	if line := r.Line("user:ann"); len(line) != 2 || line[1].Name != "org:acme" || line[0].By != "ann" {
		t.Errorf("the line is %v", line)
	}
	if n := r.Count(); n != 2 || r.Tiers()["pro"] != 1 {
		t.Errorf("%d clients, %v", n, r.Tiers())
	}
}
