package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/store/memory"
)

// gone is a repository that can be lost, or lose every race.
type gone struct {
	repo.Repository
	err   error // of everything
	write error // of writing
}

func (g *gone) Current(ctx context.Context) (repo.Version, error) {
	if g.err != nil {
		return repo.Version{}, g.err
	}
	return g.Repository.Current(ctx)
}

func (g *gone) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	if g.write != nil {
		return repo.Version{}, g.write
	}
	return g.Repository.Write(ctx, d)
}

func (g *gone) History(ctx context.Context) ([]repo.Version, error) {
	if g.err != nil {
		return nil, g.err
	}
	return g.Repository.History(ctx)
}

func (g *gone) Find(ctx context.Context, n int64) (repo.Version, error) {
	if g.err != nil {
		return repo.Version{}, g.err
	}
	return g.Repository.Find(ctx, n)
}

func TestRulesAreGone(t *testing.T) {
	g := &gone{Repository: openRules(t, testRules)}
	s := newStand(t, Options{Service: manage.Service{Rules: g}})
	g.err = errors.New("an internal path")
	for _, c := range managed {
		if !strings.Contains(c.what, "/v1/rules") || strings.Contains(c.what, "validate") {
			continue
		}
		r := s.call(c.what, c.body, "If-Match: *")
		if strings.HasPrefix(c.what, "HEAD") {
			r.want(t, 503, nil)
			continue
		}
		p := r.wantProblem(t, fault.RulesUnavailable)
		if strings.Contains(string(r.body), "business") || r.Header.Get("Retry-After") != "5" || !strings.Contains(s.log.String(), p.RequestID) {
			t.Errorf("%s: %s", c.what, r.body)
		}
	}
	s.call("POST /v1/rules/validate?as=rule", "{id: a, key: ip, limit: 1/1s}").wantProblem(t, fault.RulesUnavailable)
	g.err, g.write = nil, errors.New("the disk is full")
	s.call("POST /v1/rules", "{id: a, key: ip, limit: 1/1s}").wantProblem(t, fault.RulesUnavailable, "whether it was made")
	g.write = &repo.ReadOnlyError{Why: "rules.yaml is a link", Err: errors.New("an internal path")}
	if r := s.call("PUT /v1/rules", "rules: []", "If-Match: *"); r.Header.Get("Retry-After") != "" || strings.Contains(r.wantProblem(t, fault.RulesReadOnly, "rules.yaml is a link. Change them where they come from").Detail, "internal path") {
		t.Errorf("%v %s", r.Header, r.body)
	}
	g.write = &repo.ConflictError{Base: 2, Current: repo.Version{Number: 7}}
	s.call("POST /v1/rules", "{id: a, key: ip, limit: 1/1s}").wantProblem(t, fault.Busy)
	s.call("DELETE /v1/rules/safe", "", "If-Match: *").wantProblem(t, fault.Busy)
	if p := s.call("DELETE /v1/rules/safe", "", `If-Match: "2"`).wantProblem(t, fault.VersionConflict); p.Version != 7 {
		t.Errorf("%+v", p)
	}
}

// While the stored rules cannot be read, or are older than the rules that this instance
// applies, the rules in force can be read.
func TestRulesInForce(t *testing.T) {
	g := &gone{Repository: openRules(t, testRules)}
	s := newStand(t, Options{Service: manage.Service{Rules: g}})
	judging, err := g.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.options.Editor.Installed(judging)
	var a RulesAnswer
	s.call("GET /v1/rules", "").want(t, 200, &a)
	if a.Version != 2 || a.InForce != 2 || a.Unavailable {
		t.Errorf("while all is well: %+v", a)
	}

	g.err = errors.New("no route to host")
	a = RulesAnswer{}
	s.call("GET /v1/rules", "").want(t, 200, &a)
	if a.Version != 2 || a.InForce != 2 || !a.Unavailable || !strings.Contains(string(a.Rules), `"login"`) {
		t.Errorf("while nothing can be read: %+v", a)
	}
	s.call("GET /v1/rules/login", "").want(t, 200, nil)
	if r := s.call("GET /v1/rules?format=yaml", "").want(t, 200, nil); string(r.body) != string(judging.Source) {
		t.Errorf("as YAML: %s", r.body)
	}
	s.call("PUT /v1/rules", "rules: []", "If-Match: *").wantProblem(t, fault.RulesUnavailable)

	g.err, g.Repository = nil, &slate{version: repo.Version{Source: []byte("rules: []")}} // emptied
	a = RulesAnswer{}
	s.call("GET /v1/rules", "").want(t, 200, &a)
	if a.Version != 0 || a.InForce != 2 || a.Unavailable || string(a.Rules) != "[]" {
		t.Errorf("what is stored: %+v", a)
	}
	a = RulesAnswer{}
	s.call("GET /v1/rules?in_force=true", "").want(t, 200, &a)
	if a.Version != 2 || a.InForce != 2 || a.Unavailable || !strings.Contains(string(a.Rules), `"login"`) {
		t.Errorf("what is in force: %+v", a)
	}
	s.call("GET /v1/rules?in_force=1", "").wantProblem(t, fault.BadField, "true or false")
}

func TestApplyFails(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Apply: func(repo.Version) error { return errors.New("no room") }}})
	p := s.call("DELETE /v1/rules/safe", "", "If-Match: *").wantProblem(t, fault.NotApplied, "Version 3 is stored")
	if p.Version != 3 || !strings.Contains(s.log.String(), "no room") {
		t.Errorf("%+v, and the log %s", p, s.log)
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

// A version is in force before this instance writes the next, so that they come to
// Apply in order.
func TestVersionsAreAppliedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		repository := &slate{version: repo.Version{Number: 1, Source: []byte(testRules)}}
		var applied []int64
		proceed := make(chan bool)
		h, err := New(Options{Service: manage.Service{Engine: e, Rules: repository, Apply: func(v repo.Version) error {
			<-proceed
			applied = append(applied, v.Number)
			return nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		statuses := make(chan int)
		for _, id := range []string{"login", "safe"} {
			go func() { statuses <- direct(h, "DELETE", "/v1/rules/"+id, "", anyVersion).StatusCode }()
			synctest.Wait()
			if repository.version.Number != 2 {
				t.Errorf("version %d is written before 2 is in force", repository.version.Number)
			}
		}
		for range 2 {
			proceed <- true
			if status := <-statuses; status != 200 {
				t.Errorf("the status is %d", status)
			}
		}
		if !slices.Equal(applied, []int64{2, 3}) {
			t.Errorf("applied were %v", applied)
		}
	})
}
