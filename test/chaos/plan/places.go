package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir"
)

// PlaceTTL is after how long the place of a holder is free that was killed.
const PlaceTTL = 2 * time.Second

// PlaceRules limit how many requests of a client are in flight. They fail closed, so that only
// the store allows requests.
func PlaceRules() Rules {
	return Rules{{ID: "places", Paths: []string{"/places"}, Key: "user", OnFailure: "closed",
		Limits: []weir.Limit{{Algorithm: weir.InFlight, N: 3, Period: PlaceTTL}}}}
}

// Crowd is a client with more requests than places, some of whose holders are killed.
type Crowd struct {
	Path, User string
	Visits     []Visit
}

// Visit is a request that takes a place.
type Visit struct {
	After   time.Duration // since the crowd came
	Work    time.Duration
	Extends int  // how often its hold is extended, each time before it expires
	Killed  bool // it gives nothing back
}

// DrawCrowd draws a crowd with a key of its own.
func DrawCrowd(r *rand.Rand, rules Rules, number int) Crowd {
	c := Crowd{Path: rules[0].Paths[0], User: fmt.Sprintf("p%d", number)}
	for range 10 + r.IntN(10) {
		c.Visits = append(c.Visits, Visit{After: time.Duration(r.Int64N(int64(3 * time.Second))), Work: time.Duration(r.Int64N(int64(time.Second))),
			Extends: max(0, r.IntN(6)-3), Killed: r.IntN(3) == 0})
	}
	return c
}
