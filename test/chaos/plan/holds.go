package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir"
)

// accountLimit is more than the holds of an account ever take.
const accountLimit = 1_000_000

// DrawHoldRules draws rules under which clients reserve and settle. Nothing that is charged
// under them is forgotten within a day from now, and nobody reaches a limit. So what is
// charged is the sum of what was settled. Some requests fall under two rules, whose keys a
// cluster may keep on two servers.
func DrawHoldRules(r *rand.Rand, now time.Time) (rules Rules) {
	algorithms := []weir.Algorithm{weir.FixedWindow, weir.SlidingWindow, weir.SlidingBuckets, weir.SlidingLog}
	for i := range 2 * len(algorithms) {
		l := weir.Limit{Algorithm: algorithms[i%len(algorithms)], N: accountLimit, Period: lasting(now)}
		if l.Algorithm == weir.SlidingBuckets {
			l.Buckets = 10
		}
		rule := Rule{ID: fmt.Sprintf("h%d-%s", i, l.Algorithm), Key: "user", Limits: []weir.Limit{l},
			OnFailure: []string{"open", "open", "closed", "local"}[r.IntN(4)], OnExpiry: []string{"keep", "release"}[r.IntN(2)]}
		if rule.Paths = []string{fmt.Sprintf("/hold%d", i)}; i >= len(algorithms) {
			rule.Key, rule.Paths = "ip", []string{fmt.Sprintf("/hold%d", r.IntN(len(algorithms)))}
		}
		rules = append(rules, rule)
	}
	return rules
}

// lasting is a period of which no window ends within a day.
func lasting(now time.Time) time.Duration {
	const day = 24 * time.Hour
	for days := time.Duration(30); ; days++ {
		if passed := time.Duration(now.Unix()) * time.Second % (days * day); passed < (days-1)*day {
			return days * day
		}
	}
}

// Account is a client that reserves and settles for some seconds, and whose usage is then
// compared with that.
type Account struct {
	Path, User, IP string
	Holds          []Hold
}

// End is how a client ends a hold.
type End string

// The ways to end a hold.
const (
	Settle End = "settle" // with what was used: less, the same or more
	Race   End = "race"   // the same at two instances at once, with different numbers
	Cancel End = "cancel"
	Leave  End = "leave" // it expires, as if its holder had been killed
	Late   End = "late"  // after it has expired
)

// Hold is what a client does with one hold.
type Hold struct {
	After   time.Duration // since the account was opened
	Cost    int64
	TTL     time.Duration
	Extends int           // how often it is extended, each time before it expires
	Work    time.Duration // until it ends
	End     End
	Used    int64
	Again   bool          // it is ended once more, with another number
	Pause   time.Duration // at least, between attempts to end it
}

// TTLs of holds that are ended, and of those that are not.
const (
	longTTL  = 8 * time.Second
	shortTTL = 1500 * time.Millisecond
)

// DrawAccount draws an account with keys of its own.
func DrawAccount(r *rand.Rand, rules Rules, number int) Account {
	a := newAccount(rules[r.IntN(len(rules))].Paths[0], "h", number)
	for range 3 + r.IntN(6) {
		h := Hold{After: time.Duration(r.Int64N(int64(2 * time.Second))), Cost: 1 + r.Int64N(20), TTL: longTTL,
			Work: time.Duration(r.Int64N(int64(1500 * time.Millisecond))), Again: r.IntN(2) == 0,
			End: []End{Settle, Settle, Settle, Race, Cancel, Leave, Late}[r.IntN(7)]}
		switch h.End {
		case Settle, Race:
			h.Used = []int64{h.Cost / 2, h.Cost, h.Cost + 1 + r.Int64N(20)}[r.IntN(3)]
		case Leave, Late:
			h.TTL = shortTTL
			h.Used = h.Cost / 2
		}
		a.Holds = append(a.Holds, h)
	}
	return a
}

// DrawMany draws an account of which so many holds are open at the same time.
func DrawMany(r *rand.Rand, rules Rules, number, holds int) Account {
	a := newAccount(rules[r.IntN(len(rules))].Paths[0], "m", number)
	opening := time.Duration(holds) * 4 * time.Millisecond
	open := opening + 2*time.Second // all of them
	for range holds {
		h := Hold{After: time.Duration(r.Int64N(int64(opening))), Cost: 1 + r.Int64N(20), TTL: 3*opening + longTTL, Pause: opening / 20,
			End: []End{Settle, Settle, Cancel, Leave}[r.IntN(4)]}
		h.Work = open - h.After + time.Duration(r.Int64N(int64(opening*3/2)))
		switch h.End {
		case Settle:
			h.Used = r.Int64N(2 * h.Cost)
		case Leave:
			h.TTL = h.Work
		}
		a.Holds = append(a.Holds, h)
	}
	return a
}

// PlaceTTL is after how long the place of a holder is free that was killed.
const PlaceTTL = 2 * time.Second

// PlaceRules limit how many requests of a client are in flight. They fail closed, so that only
// the store allows requests.
func PlaceRules() Rules {
	return Rules{{ID: "places", Paths: []string{"/places"}, Key: "user", OnFailure: "closed",
		Limits: []weir.Limit{{Algorithm: weir.InFlight, N: 3, Period: PlaceTTL}}}}
}

// DrawCrowd draws an account with more requests at once than places, some of whose holders are
// killed.
func DrawCrowd(r *rand.Rand, rules Rules, number int) Account {
	a := newAccount(rules[0].Paths[0], "p", number)
	for range 10 + r.IntN(10) {
		h := Hold{After: time.Duration(r.Int64N(int64(3 * time.Second))), Cost: 1, TTL: PlaceTTL,
			Work: time.Duration(r.Int64N(int64(time.Second))), Extends: max(0, r.IntN(6)-3), End: Cancel}
		if r.IntN(3) == 0 {
			h.End = Leave
		}
		a.Holds = append(a.Holds, h)
	}
	return a
}

func newAccount(path, prefix string, number int) Account {
	return Account{Path: path, User: fmt.Sprint(prefix, number), IP: fmt.Sprintf("10.%d.%d.%d", 1+number>>16, number>>8&255, number&255)}
}
