package alert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats/archive"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// traffic makes a second of requests, of which a share is of a kind.
func traffic(n int64, change func(f *archive.Frame)) *archive.Frame {
	f := &archive.Frame{Requests: archive.Counts{Allowed: n}}
	f.Decision.Put(archive.DurationSlot(500*time.Microsecond), n)
	if change != nil {
		change(f)
	}
	return f
}

// player tells an evaluator second after second, and writes down what changes.
type player struct {
	*Evaluator
	at  time.Time
	log []string
}

func newPlayer(t testing.TB, checks []Check) *player {
	t.Helper()
	e, err := NewEvaluator(checks)
	if err != nil {
		t.Fatal(err)
	}
	return &player{Evaluator: e, at: noon}
}

func (p *player) play(seconds int, f *archive.Frame, hot *Hot) {
	for range seconds {
		for _, a := range p.Add(Sample{Time: p.at, Frame: f, Hot: hot}) {
			p.log = append(p.log, fmt.Sprintf("%v %s %s", a.UpdatedAt.Sub(noon), a.State, a.ID))
		}
		p.at = p.at.Add(time.Second)
	}
}

// Each check fires on what it is for, after its hold, and ends after its cool-down.
func TestChecks(t *testing.T) {
	good := traffic(100, func(f *archive.Frame) {
		*f.Rule(archive.Line{Rule: "soon"}) = archive.Counts{Allowed: 100}
		*f.Route("shop") = archive.Route{Requests: 100}
	})
	for _, c := range []struct {
		name string
		bad  *archive.Frame
		hot  *Hot
		want string
	}{
		{"denied", traffic(90, func(f *archive.Frame) { f.Requests.Denied = 10 }), nil, "denied"},
		{"nothing", traffic(97, func(f *archive.Frame) { f.Requests.Denied = 3 }), nil, ""},
		{"drop", traffic(30, nil), nil, "drop"},
		{"silence", traffic(0, nil), nil, "drop"},
		{"slow", traffic(100, func(f *archive.Frame) {
			f.Decision = archive.Histogram{}
			f.Decision.Put(archive.DurationSlot(5*time.Millisecond), 100)
		}), nil, "slow"},
		{"errors", traffic(100, func(f *archive.Frame) { *f.Route("shop") = archive.Route{Requests: 100, Errors: 20} }), nil, "errors"},
		{"degraded", traffic(95, func(f *archive.Frame) { f.Requests.DegradedAllowed, f.Requests.DegradedDenied = 3, 2 }), nil, "degraded"},
		{"shadow", traffic(100, func(f *archive.Frame) {
			*f.Rule(archive.Line{Rule: "soon", Tier: "pro"}) = archive.Counts{Allowed: 97, ShadowDenied: 3}
		}), nil, "shadow:soon"},
		{"hot key", traffic(99, nil), &Hot{Key: "user:eve", Denied: 300, All: 400}, "hot_key:user:eve"},
	} {
		p := newPlayer(t, nil)
		p.play(15*60, good, nil)
		if len(p.log) > 0 {
			t.Errorf("%s: in good times %v", c.name, p.log)
		}
		begin := p.at.Sub(noon)
		p.play(4*60, c.bad, c.hot)
		p.play(4*60, good, &Hot{})
		got := strings.Join(p.log, "\n")
		if c.want == "" {
			if got != "" {
				t.Errorf("%s: %s", c.name, got)
			}
			continue
		}
		if len(p.log) != 2 || !strings.HasSuffix(p.log[0], " firing "+c.want) || !strings.HasSuffix(p.log[1], " resolved "+c.want) {
			t.Errorf("%s: %s", c.name, got)
			continue
		}
		at, _ := time.ParseDuration(strings.Fields(p.log[0])[0])
		if after := at - begin; after < 30*time.Second || after > 110*time.Second {
			t.Errorf("%s: it fires after %v", c.name, after)
		}
	}
}

// That decisions are made without the store is over with the first ten seconds in which the store
// has answered all, although the window has others. While no rule decides, nobody knows.
func TestDegradedEnds(t *testing.T) {
	decided := func(c archive.Counts) *archive.Frame {
		return &archive.Frame{Requests: c, Rules: map[archive.Line]*archive.Counts{{Rule: "api"}: &c}}
	}
	lost, back := decided(archive.Counts{DegradedAllowed: 1}), decided(archive.Counts{Allowed: 1})
	p := newPlayer(t, nil)
	quiet := func(want time.Duration) {
		t.Helper()
		for _, a := range p.Firing() {
			got := time.Duration(0)
			if !a.QuietSince.IsZero() {
				got = a.QuietSince.Sub(noon)
			}
			if a.Kind == Degraded && got == want {
				return
			}
		}
		t.Errorf("%v after noon: %+v, want it quiet since %v", p.at.Sub(noon), p.Firing(), want)
	}
	p.play(64, lost, nil)
	quiet(0)
	p.play(17, back, nil) // since the second in which the seventh ten seconds have four
	quiet(80 * time.Second)
	p.play(9, lost, nil)
	quiet(80 * time.Second)
	p.play(1, lost, nil)
	quiet(0)
	p.play(9, lost, nil)
	p.play(31, traffic(1, nil), nil) // which no rule limits
	quiet(0)
}

// With little traffic, a share means nothing.
func TestMinimum(t *testing.T) {
	p := newPlayer(t, nil)
	p.play(15*60, traffic(1, nil), nil)
	p.play(10*60, traffic(0, func(f *archive.Frame) { f.Requests.Denied = 1 }), &Hot{Key: "user:eve", Denied: 50, All: 60})
	p.play(10*60, traffic(1, func(f *archive.Frame) { *f.Route("shop") = archive.Route{Requests: 1, Errors: 1} }), &Hot{})
	p.play(10*60, traffic(0, nil), nil)
	if len(p.log) > 0 {
		t.Errorf("%v", p.log)
	}
}

// A baseline that is not known yet is no reason to be alarmed.
func TestBeginning(t *testing.T) {
	p := newPlayer(t, nil)
	p.play(60, traffic(1000, nil), nil)
	p.play(5*60, traffic(100, nil), nil)
	if len(p.log) > 0 {
		t.Errorf("%v", p.log)
	}
}

// Samples that are missing are seconds without requests; after a long gap the past is
// forgotten, and what fired ends.
func TestGaps(t *testing.T) {
	p := newPlayer(t, nil)
	p.play(3*60, traffic(10, func(f *archive.Frame) { f.Requests.Denied = 90 }), nil)
	p.at = p.at.Add(3 * time.Hour)
	p.play(4*60, traffic(100, nil), nil)
	p.at = noon // a clock that was set back
	p.play(10, traffic(100, nil), nil)
	if len(p.log) != 2 || !strings.HasSuffix(p.log[1], "resolved denied") {
		t.Errorf("%v", p.log)
	}
}

// Whatever the figures do: an alert fires only after the condition has held throughout
// its hold, ends only after it has not held throughout its cool-down, and does the two in
// turn. So it changes at most once in either time.
func TestFlapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hold := 10 * time.Second * time.Duration(rapid.IntRange(1, 6).Draw(t, "hold"))
		cooldown := 10 * time.Second * time.Duration(rapid.IntRange(1, 12).Draw(t, "cooldown"))
		e, err := NewEvaluator([]Check{{Kind: Denied, Threshold: 0.5, Window: 10 * time.Second, Minimum: 1, Hold: hold, Cooldown: cooldown}})
		if err != nil {
			t.Fatal(err)
		}
		bad := rapid.SliceOfN(rapid.Bool(), 1, 300).Draw(t, "bad")
		var changes []Alert
		for i, b := range bad {
			f := traffic(10, nil)
			if b {
				f = traffic(1, func(f *archive.Frame) { f.Requests.Denied = 9 })
			}
			changes = append(changes, e.Add(Sample{Time: noon.Add(time.Duration(i) * resolution), Frame: f})...)
		}
		for i, a := range changes {
			end := int(a.UpdatedAt.Sub(noon) / resolution) // bad[end-1] was the last to be seen
			want, long := true, hold
			if a.State == Resolved {
				want, long = false, cooldown
			}
			for n := range int(long/resolution) + 1 {
				if at := end - 1 - n; at < 0 || bad[at] != want {
					t.Fatalf("%s at %d after %v: %v", a.State, end, long, bad)
				}
			}
			if i > 0 && a.State == changes[i-1].State {
				t.Fatalf("twice %s", a.State)
			}
			if i > 0 && a.UpdatedAt.Sub(changes[i-1].UpdatedAt) < long {
				t.Fatalf("%s after %v", a.State, a.UpdatedAt.Sub(changes[i-1].UpdatedAt))
			}
		}
		if firing := len(e.Firing()) > 0; firing != (len(changes)%2 == 1) {
			t.Fatalf("%d changes, firing %v", len(changes), firing)
		}
	})
}

// Keys are a client's choice, and so their number is not bounded by anybody else.
func TestConditionsAreBounded(t *testing.T) {
	p := newPlayer(t, []Check{{Kind: HotKey, Hold: time.Second, Cooldown: time.Hour}})
	for i := range 3000 {
		p.play(10, traffic(10, nil), &Hot{Key: fmt.Sprint("user:", i), Denied: 900, All: 1000})
	}
	if len(p.current) > maxConditions || len(p.history) > 100 {
		t.Errorf("%d conditions, %d buckets", len(p.current), len(p.history))
	}
}

func TestChecksAreChecked(t *testing.T) {
	for _, c := range [][]Check{
		{{Kind: "strange"}}, {{Kind: Drop}, {Kind: Drop}}, {{Kind: Denied, Threshold: 5}}, {{Kind: Slow, Threshold: 0.5}},
		{{Kind: Errors, Window: 15 * time.Second}}, {{Kind: Drop, Baseline: 30 * time.Second}}, {{Kind: Drop, Hold: -1}}, {{Kind: Drop, Window: time.Hour}},
	} {
		if _, err := NewEvaluator(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	e, err := NewEvaluator([]Check{{Kind: Denied, Off: true}})
	if err != nil || len(e.checks) != 0 {
		t.Errorf("%+v, %v", e, err)
	}
}
