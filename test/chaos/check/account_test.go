package check

import (
	"testing"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// holdRules are one rule for each policy and end of a hold, and two on one path.
func holdRules() (rules plan.Rules) {
	for _, policy := range []string{"open", "closed", "local"} {
		for _, expiry := range []string{"keep", "release"} {
			rules = append(rules, plan.Rule{ID: policy + expiry, Paths: []string{"/" + policy + "/" + expiry}, Key: "user", OnFailure: policy, OnExpiry: expiry})
		}
	}
	rules[0].Paths = append(rules[0].Paths, "/both")
	return append(rules, plan.Rule{ID: "address", Paths: []string{"/both"}, Key: "ip", OnFailure: "open", OnExpiry: "release"})
}

// The slots of the keys and the hold of these tests.
func slotOf(key string) int { return map[string]int{"user:u": 1, "ip:10.0.0.1": 2, "id": 3}[key] }

// held is a hold of 10 units for 5 s, from 1 s on.
func held(change ...func(*Hold)) Hold {
	h := Hold{ID: "id", Cost: 10, TTL: 5 * s, Reserve: Call{Span: Span{s, s + 5*ms}, Status: 200, Allowed: true}}
	for _, c := range change {
		c(&h)
	}
	return h
}

// ended adds a settlement that was sent at an instant, and answered with a state.
func ended(at time.Duration, used int64, state string, got int64) func(*Hold) {
	return func(h *Hold) {
		c := Call{Span: Span{at, at + 5*ms}, Status: map[string]int{"settled": 200, "pending": 202, "unknown": 404, "expired": 409}[state], Used: used, State: state}
		if state == "settled" {
			c.Got = map[string]int64{}
			for _, r := range holdRules() {
				c.Got[r.ID] = got
			}
		}
		h.Ends = append(h.Ends, c)
	}
}

func settled(used int64) func(*Hold) { return ended(2*s, used, "settled", used) }
func withoutStore(h *Hold) {
	h.Reserve.Degraded, h.Reserve.By = true, map[string]By{"localkeep": Instance}
}
func deniedHold(h *Hold) { h.Reserve.Allowed, h.ID = false, "" }
func noAnswer(h *Hold)   { h.Reserve.Status, h.Reserve.Allowed, h.ID = 0, false, "" }
func lateEnd(h *Hold)    { h.Ends[0].To = h.Ends[0].From + 151*ms }
func endFailed(h *Hold)  { h.Ends[0].Status, h.Ends[0].State = 503, "" }

func TestAccounts(t *testing.T) {
	lose := func(slot int, from, to time.Duration) func(*Timeline) {
		return func(t *Timeline) {
			t.Lose(Loss{Span: Span{from, to}, Lives: 1, Has: func(s int) bool { return s == slot }})
		}
	}
	down := func(t *Timeline) { t.Down(0, Span{0, Open}) }
	const keep, release = "/open/keep", "/open/release"
	for _, c := range []struct {
		name     string
		happened func(*Timeline)
		path     string
		charged  int64
		want     string // the promise that is broken; "" if none
		holds    []Hold
	}{
		{"settled with less", nil, keep, 4, "", []Hold{held(settled(4))}},
		{"settled with more", nil, keep, 14, "", []Hold{held(settled(14))}},
		{"cancelled", nil, keep, 0, "", []Hold{held(settled(0))}},
		{"two holds", nil, keep, 18, "", []Hold{held(settled(4)), held(settled(14))}},
		{"charged twice", nil, keep, 28, Charged, []Hold{held(settled(14))}},
		{"only the estimate is charged", nil, keep, 10, Charged, []Hold{held(settled(14))}},
		{"the refund is lost", nil, keep, 10, Charged, []Hold{held(settled(4))}},
		{"refunded twice", nil, keep, 2, Charged, []Hold{held(settled(4)), held(settled(4))}},

		{"a loss", lose(1, 3*s, 4*s), keep, 0, "", []Hold{held(settled(14))}},
		{"only the settlement is lost", lose(1, 3*s, 4*s), keep, 10, "", []Hold{held(settled(14))}},
		{"charged twice in spite of a loss", lose(1, 3*s, 4*s), keep, 15, Charged, []Hold{held(settled(14))}},
		{"a loss elsewhere", lose(4, 3*s, 4*s), keep, 0, Charged, []Hold{held(settled(14))}},
		{"a loss before", lose(1, 0, s/2), keep, 0, Charged, []Hold{held(settled(14))}},
		{"the loss of a directory", lose(3, 1500*ms, 1600*ms), keep, 10, "", []Hold{held(ended(2*s, 4, "unknown", 0))}},
		{"a loss under another rule", lose(2, 1500*ms, 1600*ms), "/both", 10, "", []Hold{held(ended(2*s, 4, "unknown", 0))}},

		{"left", nil, keep, 10, "", []Hold{held()}},
		{"left, and given back", nil, keep, 0, Charged, []Hold{held()}},
		{"released", nil, release, 0, "", []Hold{held()}},
		{"it outlives its ttl", nil, release, 10, Charged, []Hold{held()}},
		{"settled late", nil, keep, 4, Outlives, []Hold{held(ended(6200*ms, 4, "settled", 4))}},
		{"settled by an earlier call", nil, keep, 4, "", []Hold{held(ended(2*s, 4, "pending", 0), ended(6200*ms, 4, "settled", 4))}},
		{"expired", nil, keep, 10, "", []Hold{held(ended(6200*ms, 4, "expired", 0))}},
		{"expired early", nil, keep, 10, Outlives, []Hold{held(ended(5500*ms, 4, "expired", 0))}},
		{"expired after its end", nil, keep, 4, Once, []Hold{held(settled(4), ended(6200*ms, 4, "expired", 0))}},

		{"the first outcome", nil, keep, 4, "", []Hold{held(settled(4), ended(3*s, 7, "settled", 4))}},
		{"another outcome", nil, keep, 4, Once, []Hold{held(settled(4), ended(3*s, 7, "settled", 7))}},
		{"another outcome after a loss", lose(1, 2500*ms, 2600*ms), keep, 7, "", []Hold{held(settled(4), ended(3*s, 7, "settled", 7))}},
		{"forgotten", nil, keep, 10, Once, []Hold{held(ended(2*s, 4, "unknown", 0))}},

		{"pending, and made", nil, keep, 4, "", []Hold{held(ended(2*s, 4, "pending", 0))}},
		{"pending, and lost", nil, keep, 10, "", []Hold{held(ended(2*s, 4, "pending", 0))}},
		{"pending, and made twice", nil, keep, 28, Charged, []Hold{held(ended(2*s, 14, "pending", 0))}},

		{"nobody knows its id", down, keep, 10, "", []Hold{held(noAnswer)}},
		{"it was not reserved", down, keep, 0, "", []Hold{held(noAnswer)}},
		{"no answer, and twice", down, keep, 20, Charged, []Hold{held(noAnswer)}},
		{"no answer, and never released", down, release, 10, Charged, []Hold{held(noAnswer)}},
		{"no answer from who is there", nil, keep, 10, NoError, []Hold{held(noAnswer)}},
		{"denied", nil, keep, 0, "", []Hold{held(deniedHold)}},
		{"denied, and charged", nil, keep, 10, Charged, []Hold{held(deniedHold)}},
		{"denied without the store", nil, "/closed/keep", 10, "", []Hold{held(deniedHold, withoutStore)}},

		{"open without the store", nil, keep, 4, "", []Hold{held(withoutStore, settled(4))}},
		{"open without the store, charged twice", nil, keep, 8, Charged, []Hold{held(withoutStore, settled(4))}},
		{"open without the store, free", nil, keep, 0, Charged, []Hold{held(withoutStore, settled(4))}},
		{"open without the store, forgotten", nil, keep, 0, "", []Hold{held(withoutStore, ended(2*s, 4, "unknown", 0))}},
		{"local", nil, "/local/keep", 0, "", []Hold{held(withoutStore, settled(4))}},
		{"local, charged for all", nil, "/local/keep", 20, Charged, []Hold{held(withoutStore, settled(4))}},

		{"a late answer", nil, keep, 4, InTime, []Hold{held(settled(4), lateEnd)}},
		{"an error", nil, keep, 10, NoError, []Hold{held(settled(4), endFailed)}},
		{"allowed without an id", nil, keep, 10, Sound, []Hold{held(func(h *Hold) { h.ID = "" })}},
	} {
		checker := New(holdRules(), 50*ms, slotOf)
		if c.happened != nil {
			c.happened(checker.Timeline)
		}
		a := Account{Begun: s, Path: c.path, User: "u", IP: "10.0.0.1", Holds: c.holds}
		r := Reading{Span: Span{12 * s, 12*s + ms}, Charged: map[string]int64{}}
		for _, rule := range holdRules() {
			r.Charged[rule.ID] = c.charged
		}
		a.Readings = []Reading{r}
		checker.NoteGroup(&a)
		checker.Judge(12 * s)
		if tally, _, _ := checker.Result(); tally.Accounts != 0 {
			t.Errorf("%s: it was checked before its end", c.name)
		}
		checker.Judge(Open)
		tally, violations, _ := checker.Result()
		for _, v := range violations {
			if v.Promise != c.want {
				t.Errorf("%s: %s, %s; want %q", c.name, v.Promise, v.What, c.want)
			}
		}
		if c.want != "" && len(violations) == 0 {
			t.Errorf("%s: nothing was found, want %q", c.name, c.want)
		}
		if checker.Fits(&a, &r) != (c.want != Charged) {
			t.Errorf("%s: it fits: %t", c.name, c.want == Charged)
		}
		if tally.Accounts != 1 || tally.Holds != int64(len(c.holds)) {
			t.Errorf("%s: %+v", c.name, tally)
		}
	}
}
