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
		wrong bool
		event func(*Timeline)
	}{
		"as it is":                         {time.Second, "org:a user:m", false, nil},
		"as it never was":                  {time.Second, "org:c user:m", true, nil},
		"as it will be":                    {time.Second, "org:b user:m", true, nil},
		"while it changes, the former":     {10*time.Second + 5*ms, "org:a user:m", false, nil},
		"while it changes, the next":       {10*time.Second + 5*ms, "org:b user:m", false, nil},
		"a little later, the former":       {12 * time.Second, "org:a user:m", false, nil},
		"much later, the former":           {14 * time.Second, "org:a user:m", true, nil},
		"much later, of one that was away": {14 * time.Second, "org:a user:m", false, func(l *Timeline) { l.Down(0, Span{13 * time.Second, 13500 * ms}) }},
		"much later, of a store that was":  {14 * time.Second, "org:a user:m", false, func(l *Timeline) { l.Sick(Span{11 * time.Second, 13 * time.Second}) }},
		"deleted":                          {30 * time.Second, "", false, nil},
		"deleted, but counted":             {30 * time.Second, "org:b user:m", true, nil},
		"perhaps moved, the former":        {58 * time.Second, "", false, nil},
		"perhaps moved":                    {58 * time.Second, "org:d user:m", false, nil},
		"moved after that":                 {70 * time.Second, "org:d user:m", true, nil},
		"lost":                             {18 * time.Second, "", false, func(l *Timeline) { l.Lose(Loss{Span{15 * time.Second, 16 * time.Second}, 1, nil}) }},
		"lost, long ago":                   {18 * time.Second, "", true, func(l *Timeline) { l.Lose(Loss{Span{5 * time.Second, 6 * time.Second}, 1, nil}) }},
		"lost elsewhere": {18 * time.Second, "", true, func(l *Timeline) {
			l.Lose(Loss{Span{15 * time.Second, 16 * time.Second}, 1, func(slot int) bool { return slot > 0 }})
		}},
		"made, and lost with its master": {18 * time.Second, "org:a user:m", false, func(l *Timeline) { l.Lose(Loss{Span{10500 * ms, 11 * time.Second}, 1, nil}) }},
		"lost, as it never was":          {18 * time.Second, "org:c user:m", true, func(l *Timeline) { l.Lose(Loss{Span{10500 * ms, 11 * time.Second}, 1, nil}) }},
	} {
		moves := &Moves{}
		for i, l := range []string{"org:a user:m", "org:b user:m", "", "", "", "org:d user:m", "org:e user:m"} {
			at := time.Duration(i) * 10 * time.Second
			moves.Note(Move{Span: Span{at, Open}, Lines: lines(l)})
			moves.Answered(at+10*ms, l != "org:d user:m")
		}
		checker := New(nil, time.Second, nil)
		if c.event != nil {
			c.event(checker.Timeline)
		}
		checker.NoteGroup(&Member{Call: Call{Span: Span{c.at, c.at + ms}, Status: 200}, Key: "k", Line: c.line, Moves: moves})
		checker.Judge(Open)
		if tally, violations, _ := checker.Result(); tally.Members != 1 || len(violations) > 0 != c.wrong {
			t.Errorf("%s: %+v", name, violations)
		}
	}
}
