package check

import (
	"testing"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

func TestMembers(t *testing.T) {
	lines := func(line string) plan.Company { return plan.Company{"k": line} }
	for name, c := range map[string]struct {
		at    time.Duration
		line  string
		down  bool
		wrong bool
	}{
		"as it is":                         {time.Second, "org:a user:m", false, false},
		"as it never was":                  {time.Second, "org:c user:m", false, true},
		"as it will be":                    {time.Second, "org:b user:m", false, true},
		"while it changes, the former":     {10*time.Second + 5*ms, "org:a user:m", false, false},
		"while it changes, the next":       {10*time.Second + 5*ms, "org:b user:m", false, false},
		"a little later, the former":       {11 * time.Second, "org:a user:m", false, false},
		"much later, the former":           {13 * time.Second, "org:a user:m", false, true},
		"much later, of one that was away": {13 * time.Second, "org:a user:m", true, false},
		"deleted":                          {30 * time.Second, "", false, false},
		"deleted, but counted":             {30 * time.Second, "org:b user:m", false, true},
	} {
		moves := &Moves{}
		for i, l := range []string{"org:a user:m", "org:b user:m", ""} {
			at := time.Duration(i) * 10 * time.Second
			moves.Note(Move{Span{at, Open}, lines(l)})
			moves.Written(at + 10*ms)
		}
		checker := New(nil, time.Second, nil)
		if c.down {
			checker.Timeline.Down(0, Span{c.at - time.Second, c.at - 500*ms})
		}
		checker.NoteGroup(&Member{Call: Call{Span: Span{c.at, c.at + ms}, Status: 200}, Key: "k", Line: c.line, Moves: moves})
		checker.Judge(Open)
		if tally, violations, _ := checker.Result(); tally.Members != 1 || len(violations) > 0 != c.wrong {
			t.Errorf("%s: %+v", name, violations)
		}
	}
}
