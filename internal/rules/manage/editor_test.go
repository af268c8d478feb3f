package manage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

func TestEdits(t *testing.T) {
	repository := openRules(t)
	var applied []int64
	e := NewEditor(repository, func(v repo.Version) error {
		applied = append(applied, v.Number)
		return nil
	})
	ctx := t.Context()
	alice := Terms{Author: "alice"}
	signin := mustRule(t, "{id: signin, match: {path: /signin}, key: ip, limit: 1/1m}")

	w, err := e.Add(ctx, Terms{Author: "alice", Summary: "new page"}, signin)
	if err != nil || !w.New || !w.CommentsKept || w.Version.Number != 3 || w.Version.Author != "alice" || w.Version.Summary != "new page" || len(w.Warnings) != 1 {
		t.Fatalf("%+v %v", w, err)
	}
	_, err = e.Add(ctx, alice, signin)
	if is[*ExistsError](t, err).ID != "signin" {
		t.Error(err)
	}
	if w, err = e.Put(ctx, alice, signin); err != nil || w.New || w.Version.Number != 3 {
		t.Errorf("what changes nothing is written: %+v %v", w, err)
	}
	if w, err = e.Put(ctx, Terms{Match: Base(3)}, mustRule(t, "{id: search, key: ip, limit: 1/1m}")); err != nil || !w.New || w.Version.Number != 4 || len(w.Warnings) != 0 {
		t.Errorf("%+v %v", w, err)
	}
	_, err = e.Delete(ctx, Terms{Match: Base(3)}, "search")
	if is[*OutdatedError](t, err).Current != 4 {
		t.Error(err)
	}
	if w, err = e.Delete(ctx, Terms{Match: Base(4)}, "search"); err != nil || w.Version.Number != 5 {
		t.Errorf("%+v %v", w, err)
	}
	if _, err = e.Delete(ctx, alice, "search"); !errors.Is(err, ruleedit.ErrNoRule) {
		t.Error(err)
	}
	old, err := e.Version(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if w, err = e.RollBack(ctx, alice, old); err != nil || string(w.Version.Source) != testRules || w.Version.Summary != "rolled back to 2: removed signin" || w.Version.Number != 6 {
		t.Errorf("%+v %v", w, err)
	}
	_, err = e.Read([]byte("rules: [{id: a}]"))
	is[*rule.InvalidError](t, err)
	if _, err := e.Version(ctx, 99); !errors.Is(err, repo.ErrNoVersion) {
		t.Error(err)
	}
	if history, err := e.History(ctx); err != nil || history[0].Number != 6 {
		t.Errorf("%v %v", history, err)
	}
	if !slices.Equal(applied, []int64{3, 3, 4, 5, 6}) {
		t.Errorf("applied were %v", applied)
	}
	v, err := e.Current(ctx)
	if err != nil || v.Number != 6 || len(v.Document.Set.Rules) != 2 || v.Document.Find("api") == nil || v.Document.Find("search") != nil {
		t.Errorf("%v %v", v, err)
	}
	if again, _ := e.Current(ctx); again.Document != v.Document {
		t.Error("the same document was parsed again")
	}
}

// While the stored document has errors, a change is made to the version in force, and its warnings tell where the copy of the
// replaced document is. A version is restored even if it is in force, but a client that is listed is not listed again.
func TestEditsReplaceErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	breakIt := func() {
		t.Helper()
		if err := os.WriteFile(path, []byte("rules: [half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := filerepo.Open(path, filerepo.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	e, ctx := NewEditor(repository, nil), t.Context()
	block := func() (Written, error) {
		return e.List(ctx, Terms{}, ruleedit.Listing{List: "block", Kind: "ip", Client: "192.0.2.1"})
	}
	replaced := func(w Written, err error, number int64, summary string) {
		t.Helper()
		if err != nil || w.Version.Number != number || w.Version.Summary != summary || len(w.Warnings) != 1 || w.Warnings[0].Code != "W021" || !strings.Contains(w.Warnings[0].Message, "a copy is in "+path+".history/unusable.yaml") {
			t.Errorf("%+v %v", w, err)
		}
	}
	breakIt()
	w, err := block()
	replaced(w, err, 2, "block: added ip 192.0.2.1")
	if w, err = block(); err != nil || w.Version.Number != 2 || len(w.Warnings) != 0 {
		t.Errorf("%+v %v", w, err)
	}
	breakIt()
	if w, err = block(); err != nil || w.Version.Number != 2 || len(w.Warnings) != 0 {
		t.Errorf("%+v %v", w, err)
	}
	v, err := e.Version(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	w, err = e.RollBack(ctx, Terms{}, v)
	replaced(w, err, 3, "rolled back to 2: nothing changed")
	if v, err = e.Current(ctx); err != nil || v.Number != 3 || v.Trouble != nil {
		t.Errorf("%+v %v", v, err)
	}
	if v, err = e.Version(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if w, err = e.RollBack(ctx, Terms{}, v); err != nil || w.Version.Summary != "rolled back to 1: block changed" {
		t.Errorf("%+v %v", w, err)
	}
}

// A change to whatever is there is made again on top of somebody else's; one to a version
// is not.
func TestLostRaces(t *testing.T) {
	r := mustRule(t, "{id: new, key: ip, limit: 1/1m}")
	repository := &racing{Repository: openRules(t), lost: 3}
	w, err := NewEditor(repository, nil).Put(t.Context(), Terms{}, r)
	if err != nil || w.Version.Number != 6 || repository.writes != 4 || !w.New {
		t.Errorf("%+v %v", w, err)
	}
	if n := bytes.Count(w.Version.Source, []byte("# somebody else")); n != 3 {
		t.Errorf("%d of 3 changes of others are there", n)
	}
	repository = &racing{Repository: openRules(t), lost: 1}
	_, err = NewEditor(repository, nil).Put(t.Context(), Terms{Match: Base(2)}, r)
	if is[*OutdatedError](t, err).Current != 3 || repository.writes != 1 {
		t.Errorf("%v", err)
	}
	repository = &racing{Repository: openRules(t), lost: maxTries}
	if _, err = NewEditor(repository, nil).Put(t.Context(), Terms{}, r); !errors.Is(err, ErrBusy) || repository.writes != maxTries {
		t.Errorf("%v after %d", err, repository.writes)
	}
}

func TestUnapplied(t *testing.T) {
	cause := errors.New("no room")
	e := NewEditor(openRules(t), func(repo.Version) error { return cause })
	_, err := e.Delete(t.Context(), Terms{}, "api")
	if is[*UnappliedError](t, err).Version != 3 || !errors.Is(err, cause) {
		t.Error(err)
	}
}

// slate is a repository that waits for nothing, as a bubble of fake time needs it.
type slate struct {
	repo.Repository
	reader  ruleedit.Reader
	version repo.Version
}

func (s *slate) Read(source []byte) (*ruleedit.Document, error) { return s.reader.Read(source) }

func (s *slate) Current(context.Context) (v repo.Version, err error) {
	s.version.Document, err = s.Read(s.version.Source)
	return s.version, err
}

func (s *slate) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	s.version = repo.Version{Number: d.Base + 1, Source: d.Source}
	return s.Current(ctx)
}

// One writes at a time, and who does not wait any longer has not written.
func TestWritersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repository := &slate{version: repo.Version{Number: 1, Source: []byte(testRules)}}
		proceed := make(chan bool)
		e := NewEditor(repository, func(repo.Version) error {
			<-proceed
			return nil
		})
		first := make(chan error, 1)
		go func() {
			_, err := e.Delete(t.Context(), Terms{}, "login")
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() {
			_, err := e.Delete(ctx, Terms{}, "api")
			second <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		proceed <- true
		if err := <-first; err != nil || repository.version.Number != 2 {
			t.Errorf("%v, and the version is %d", err, repository.version.Number)
		}
	})
}

func TestTry(t *testing.T) {
	e := NewEditor(openRules(t), nil)
	for _, c := range []struct{ source, code string }{
		{"{id: a, key: ip, limit: 1/1s}", ""},
		{"{id: a, key: ip}", "E007"},
		{"{id: signin, match: {path: /signin}, key: ip, limit: 1/1s}", "W006"},
		{"{id: b, key: user, limit: 100/1m}", "E025"},
	} {
		problems, err := e.Try(t.Context(), []byte(c.source))
		code := ""
		if len(problems) > 0 {
			code = problems[0].Code
		}
		if err != nil || code != c.code {
			t.Errorf("%s: %v %v", c.source, problems, err)
		}
	}
}

func TestReadDocument(t *testing.T) {
	e := NewEditor(openRules(t), nil)
	read := func(source string) error {
		_, err := e.Read([]byte(source))
		return err
	}
	for _, source := range []string{"rules: []", "rules:", testRules} {
		if err := read(source); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, source := range []string{"", "# nothing", "exempt: {ip: [192.0.2.1]}"} {
		if err := read(source); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v", source, err)
		}
	}
	if p := is[*rule.InvalidError](t, read("rules: 5")).Problems[0]; p.File != "" {
		t.Errorf("the problem names the file %s", p.File)
	}
	_, err := ParseRule([]byte("rules: []"))
	is[*rule.InvalidError](t, err)
}

// What is written for one rule is read as that rule.
func TestRuleToYAML(t *testing.T) {
	for _, source := range []string{
		"{id: a, key: ip, limit: 1/1m}",
		`{id: a, description: "two\nlines", key: [ip, user], limits: [1/1s, 2/1m], match: {path: [/a, /b/**]}, overrides: {"ip:192.0.2.1|user:x": unlimited}, tiers: {pro: {limit: 3/1s}}}`,
	} {
		r := mustRule(t, source)
		text := RuleToYAML(r)
		if same := mustRule(t, string(text)); !bytes.Equal(rule.RuleToJSON(same), rule.RuleToJSON(r)) || !strings.HasPrefix(string(text), "id: a\n") {
			t.Errorf("%s", text)
		}
	}
}
