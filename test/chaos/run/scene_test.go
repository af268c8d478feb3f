package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// A small scene with every kind of fault that a single Redis can have. What depends on
// the speed of the machine is not checked here.
func TestScene(t *testing.T) {
	program := filepath.Join(t.TempDir(), "weir")
	if out, err := build.Weir("../../..", build.Host, program, "-buildvcs=false").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h, err := testkit.NewScope("chaos")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := newScene(t.Context(), Options{Seed: 1, Rate: 200, Holds: 60, Timeout: 50 * time.Millisecond, Weir: program, Out: t.TempDir()}, h, plan.Single)
	if err := s.scope.Try(s.open); err != nil {
		t.Fatal(err)
	}
	kinds := map[plan.Kind]bool{}
	for i, kind := range plan.Single.Kinds() {
		f := plan.Fault{Kind: kind, For: 150 * time.Millisecond, Pick: i, Delay: 80 * time.Millisecond, Bytes: 20}
		if kinds[kind] {
			continue
		}
		kinds[kind] = true
		if err := s.scope.Try(func() { s.make(f) }); err != nil {
			t.Error(err)
		}
	}
	if err := s.scope.Try(s.measure); err != nil {
		t.Error(err)
	}
	// A call that takes too long on a slow machine leaves some doubt; then another account has none.
	for number, exact := 1<<12, false; !exact && number < 1<<12+100; number++ {
		held := account(s, number)
		n := len(held.Readings)
		if n == 0 || !s.checker.Fits(&held, &held.Readings[n-1]) {
			t.Fatalf("%+v", held)
		}
		s.checker.NoteGroup(&held)
		exact = s.checker.IsExact(&held, &held.Readings[n-1])
	}
	s.close()
	tally, violations, _ := s.checker.Result()
	if tally.Accounts == 0 || tally.Members == 0 || tally.Moves == 0 || tally.Exact == 0 || tally.Allowed == 0 || tally.Denied == 0 || tally.Degraded == 0 || tally.Unanswered == 0 {
		t.Errorf("%+v", tally)
	}
	for _, v := range violations {
		switch v.Promise {
		case check.Bound, check.Policy, check.Sound, check.Once, check.Outlives, check.Belongs:
			t.Errorf("%+v", v)
		}
	}
	lives := 0
	for _, sample := range s.samples {
		lives += sample.Life
		if sample.Goroutines == 0 || sample.Resident == 0 {
			t.Errorf("%+v", sample)
		}
	}
	if want := plan.Instances + 2; lives != want { // one was killed, one was stopped
		t.Errorf("the instances had %d lives, want %d", lives, want)
	}
	if faults := s.line.Around(check.Span{From: 0, To: s.now()}); len(faults) != len(kinds) {
		t.Errorf("%d faults of %d are known", len(faults), len(kinds))
	}
	name, err := save(s, &Scene{Violations: []check.Violation{{Promise: check.NoError}}}) // as if there were one
	text, _ := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), check.NoError) || strings.Count(string(text), `{"answer":`) < 100 {
		t.Errorf("the history, %v:\n%.1000s", err, text)
	}
}

// account ends a hold in every way, at the instances of a scene.
func account(s *scene, number int) check.Account {
	a := plan.DrawAccount(s.random("account"), s.holders.rules, number)
	a.Holds = nil
	for i, end := range []plan.End{plan.Settle, plan.Settle, plan.Race, plan.Cancel, plan.Leave, plan.Late} {
		h := plan.Hold{Cost: 10, TTL: time.Minute, End: end, Used: int64(5 * i), Again: true}
		if end == plan.Leave || end == plan.Late {
			h.TTL = 10 * time.Millisecond
		}
		a.Holds = append(a.Holds, h)
	}
	return s.holders.play(s.ctx, s.random("instances"), a)
}
