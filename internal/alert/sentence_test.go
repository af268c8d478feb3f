package alert

import (
	"testing"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// An alert is one sentence, with what it is about.
func TestSentences(t *testing.T) {
	good := traffic(100, func(f *archive.Frame) {
		*f.Rule(archive.Line{Rule: "soon"}) = archive.Counts{Allowed: 100}
		*f.Route("shop") = archive.Route{Requests: 100}
	})
	for _, c := range []struct {
		kind Kind
		bad  *archive.Frame
		hot  *Hot
		want string
	}{
		{Denied, traffic(80, func(f *archive.Frame) { f.Requests.Denied = 20 }), nil, "20.0 % of requests are denied by limits."},
		{Denied, crowd(1000, 900, 5, 3), nil, "3 of 5 clients (60.0 %) are denied by limits; most denials are by the rule api."},
		{Drop, traffic(0, nil), nil, "Traffic dropped to 0 % of its previous level."},
		{Slow, traffic(100, func(f *archive.Frame) {
			f.Decision = archive.Histogram{}
			f.Decision.Put(archive.DurationSlot(5*time.Millisecond), 100)
		}), nil, "One decision in a hundred takes 5.243ms or longer; before, it was 524µs."},
		{Errors, traffic(100, func(f *archive.Frame) { *f.Route("shop") = archive.Route{Requests: 100, Errors: 100} }), nil, "66.7 % of requests to upstreams failed."},
		{Degraded, traffic(95, func(f *archive.Frame) { f.Requests.DegradedAllowed = 5 }), nil, "4.2 % of requests are decided without the store."},
		{Shadow, traffic(100, func(f *archive.Frame) { *f.Rule(archive.Line{Rule: "soon"}) = archive.Counts{ShadowDenied: 100} }), nil, "The shadow rule soon would deny 66.7 % of its requests."},
		{HotKey, traffic(99, nil), &Hot{Key: "user:50%\x00", Denied: 300, All: 400}, `The client "user:50%\x00" has 75.0 % of all denials.`},
		{HotKey, traffic(99, nil), &Hot{Key: "user:bob", Denied: 300, All: 9000, Decided: 8600}, `The client "user:bob" has 75.0 % of all denials.`},
		{HotKey, crowd(1000, 900, 5, 3), &Hot{Key: "ip:192.0.2.1", Rule: "login", Denied: 300, All: 400}, `The client "ip:192.0.2.1" has 75.0 % of all denials, most of them by the rule login.`},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			p := newPlayer(t, []Check{{Kind: c.kind}})
			if c.kind != Denied && c.kind != HotKey {
				p.play(15*60, good, nil)
			}
			p.play(80, c.bad, c.hot)
			firing := p.Firing()
			if len(firing) != 1 || firing[0].Summary != c.want || c.hot != nil && firing[0].Rule != c.hot.Rule {
				t.Errorf("%+v", firing)
			}
		})
	}
}

func TestSentenceNamesInstance(t *testing.T) {
	w := &Watcher{options: Options{Instance: "here :8080", Link: func(a Alert) string { return "http://here/#" + a.ID }}}
	signed := w.sign([]Alert{{ID: "drop", Summary: "Traffic dropped."}})
	a := attributed(signed)[0]
	if a.Summary != "Traffic dropped (reported by here :8080)." || signed[0].Summary != "Traffic dropped." || a.Instance != "here :8080" || a.URL != "http://here/#drop" {
		t.Errorf("%+v", a)
	}
}
