package repo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestDraftReady(t *testing.T) {
	const current, source = "rules: [{id: a, key: ip, limit: 5/1m}]", "rules: [{id: a, key: ip, limit: 6/1m}]"
	reader := new(ruleedit.Reader)
	old, err := reader.Read([]byte(current))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ author, summary, wantAuthor, wantSummary string }{
		{"alice", "by hand", "alice", "by hand"},
		{" alice\nroot: ", "\t", "alice root:", "a: limit 5/1m → 6/1m"},
		{"\xff\x00", "a\u2028b", "\uFFFD", "a b"},
		{strings.Repeat("é", 200), strings.Repeat("é", 1000), strings.Repeat("é", 98) + "…", strings.Repeat("é", 498) + "…"},
	} {
		v, err := repo.Draft{Author: c.author, Summary: c.summary, Source: []byte(source)}.Ready(reader, old)
		if err != nil || v.Author != c.wantAuthor || v.Summary != c.wantSummary || string(v.Source) != source || string(v.Document.Source) != source {
			t.Errorf("%+v, %v, want %q and %q", v, err, c.wantAuthor, c.wantSummary)
		}
	}
	if d, err := (repo.Draft{Source: []byte(source)}).Ready(reader, nil); err != nil || d.Summary != "added a" {
		t.Errorf("after no document: %+v, %v", d, err)
	}
	var invalid *rule.InvalidError
	if _, err := (repo.Draft{Source: []byte("rules: [{}]")}).Ready(&ruleedit.Reader{Name: "r.yaml"}, nil); !errors.As(err, &invalid) || len(invalid.Problems) < 2 || invalid.Problems[0].File != "r.yaml" {
		t.Errorf("of a document that cannot be used: %v", err)
	}
	if _, err := (repo.Draft{Source: []byte(strings.Repeat("#", rule.MaxDocument+1))}).Ready(reader, nil); !errors.As(err, &invalid) {
		t.Errorf("of a document that is too large: %v", err)
	}
	if _, err := (repo.Draft{Source: []byte(source)}).Ready(&ruleedit.Reader{Name: "rules.json"}, nil); !errors.As(err, &invalid) {
		t.Errorf("of YAML in a file of JSON: %v", err)
	}
}

func TestNotifier(t *testing.T) {
	var told []string
	n := repo.Notifier{Changed: func(v repo.Version, err error) { told = append(told, fmt.Sprintf("%d%v", v.Number, err)) }}
	one, two := &repo.Version{Number: 1}, &repo.Version{Number: 2}
	again := &repo.Version{Number: 2, Time: time.Unix(1, 0)}
	down, bad := errors.New("down"), errors.New("bad")
	for _, step := range []struct {
		v    *repo.Version
		err  error
		want string
	}{
		{nil, down, "0down"}, {nil, down, ""},
		{one, nil, "1<nil>"}, {one, nil, ""},
		{nil, down, "1down"}, {one, nil, "1<nil>"},
		{one, bad, "1bad"}, {one, bad, ""}, {one, down, "1down"}, {one, nil, "1<nil>"},
		{one, bad, "1bad"}, {two, nil, "2<nil>"}, {again, nil, "2<nil>"},
		{one, bad, "1<nil> 1bad"}, {one, bad, ""}, {two, bad, "2<nil> 2bad"}, {two, nil, "2<nil>"},
	} {
		told = nil
		n.Tell(step.v, step.err)
		if !slices.Equal(told, strings.Fields(step.want)) {
			t.Errorf("Tell(%v, %v) said %q, want %q", step.v, step.err, told, step.want)
		}
	}
}
