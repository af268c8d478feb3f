package replay

import (
	"maps"
	"math"

	"github.com/weirhq/weir"
)

// demand is what clients asked of one limit, whatever became of it: for each client
// when, and how often at that instant. So any other limit can be tried on it later.
//
// There is room for so many arrivals. When it is used up, the clients with the
// fewest are forgotten; see forget.
type demand struct {
	demandKey
	cost int64 // of a request
	room int

	clients map[string]*client
	used    int // arrivals of all clients

	requests int64 // all of them, also of those who were forgotten
	forgot   int64 // no client has more than so many forgotten requests at a time
	until    int64 // when there was no more room at all; 0 if there was
}

// client is who asked, and when, in the order of time.
type client struct {
	arrivals []arrival
	requests int64
}

type arrival struct {
	at int64
	n  int64 // requests at this instant
}

// demandKey is a limit of a rule. Levels can share one.
type demandKey struct {
	limit *weir.Compiled
	level string // "" if the rule has none
}

func newDemand(key demandKey, cost int64, room int) *demand {
	return &demand{demandKey: key, cost: cost, room: max(1, room), clients: make(map[string]*client)}
}

// addArrival remembers a request. The client's bytes are the caller's. Time does not go
// back.
func (d *demand) addArrival(key string, now int64) {
	if d.until != 0 {
		return
	}
	c := d.clients[key]
	if c == nil || c.arrivals[len(c.arrivals)-1].at != now {
		if d.used == d.room {
			if !d.forget() {
				d.until = now
				d.clients = maps.Collect(maps.All(d.clients)) // in no more room than they need
				return
			}
			c = d.clients[key]
		}
		if c == nil {
			c = &client{}
			d.clients[string([]byte(key))] = c
		}
		c.arrivals = append(c.arrivals, arrival{at: now})
		d.used++
	}
	d.requests++
	c.requests++
	c.arrivals[len(c.arrivals)-1].n++
}

// forget drops the clients with the fewest requests until a quarter of the room is
// free. A client with few requests is never denied, so this changes the result very
// little. It returns false when it would have to drop clients with an eighth of the
// busiest client's requests: then only the beginning of the log is used.
func (d *demand) forget() bool {
	most := int64(0)
	for _, c := range d.clients {
		most = max(most, c.requests)
	}
	for few := max(1, d.forgot); few <= most/8; few *= 2 {
		free := 0
		for _, c := range d.clients {
			if c.requests <= few {
				free += len(c.arrivals)
			}
		}
		if free < (d.room+3)/4 {
			continue
		}
		for key, c := range d.clients {
			if c.requests <= few {
				d.used -= len(c.arrivals)
				delete(d.clients, key)
			}
		}
		d.forgot = few
		return true
	}
	return false
}

// Suggestion is what other limits of a rule would have denied, each alone: as if
// no other rule or limit denied anything.
type Suggestion struct {
	Level    string  `json:"level,omitempty"` // of the rule, if it has levels
	Limit    string  `json:"limit"`           // as it is
	Requests int64   `json:"requests"`        // to which it applied
	Denied   int64   `json:"denied"`          // by this limit alone
	Share    float64 `json:"denied_share"`

	// For are the smallest limits that would have denied no more than a share.
	For []LimitFor `json:"for"`

	// Until is set if only the beginning of the log was looked at, and Forgotten is by
	// how many requests of one client the figures may be off at most; see
	// docs/guides/replay.md.
	Until     *Instant `json:"until,omitempty"`
	Forgotten int64    `json:"forgotten,omitempty"`
}

// LimitFor is a limit for a share of denied requests.
type LimitFor struct {
	Share  float64 `json:"share"`
	Limit  string  `json:"limit,omitempty"` // "" if no limit of this algorithm keeps to the share
	Denied int64   `json:"denied"`
}

// suggest finds the limits for some shares. Those that deny at most a share are
// found by halving: more is denied by a smaller limit. (With denials that cost
// nothing that is no law, to the last request; but the limit that is found denies
// no more than the share, and the next smaller one more.)
func (d *demand) suggest(shares []float64) Suggestion {
	current := d.limit.Limit()
	s := Suggestion{Level: d.level, Limit: current.String(), Requests: d.requests, Forgotten: d.forgot}
	if d.until != 0 {
		at := Instant(d.until)
		s.Until = &at
	}
	tried := make(map[int64]int64)
	denied := func(n int64) int64 {
		if _, ok := tried[n]; !ok {
			tried[n] = d.denied(d.with(n))
		}
		return tried[n]
	}
	s.Denied = denied(current.N)
	if d.requests > 0 {
		s.Share = float64(s.Denied) / float64(d.requests)
	}
	ceiling := d.ceiling()
	for _, share := range shares {
		allowed := int64(share * float64(d.requests))
		f := LimitFor{Share: share, Denied: denied(ceiling)}
		if f.Denied <= allowed {
			low, high := int64(0), ceiling // low denies too much, high does not
			if n := current.N; n < high && denied(n) <= allowed {
				high = n
			} else if n < high {
				low = n
			}
			for high-low > 1 {
				if middle := low + (high-low)/2; denied(middle) <= allowed {
					high = middle
				} else {
					low = middle
				}
			}
			f.Limit, f.Denied = d.with(high).Limit().String(), denied(high)
		}
		s.For = append(s.For, f)
	}
	return s
}

// with is the limit with another N, and a burst that is as much larger. It is nil
// where that cannot be counted exactly, or cannot be counted at all.
func (d *demand) with(n int64) *weir.Compiled {
	l := d.limit.Limit()
	if l.Burst > 0 {
		l.Burst = max(1, int64(math.Round(float64(l.Burst)*float64(n)/float64(l.N))))
	}
	l.N = n
	c, err := l.Compile()
	if err != nil {
		return nil
	}
	return c
}

// ceiling is a limit that denies no client, or the largest possible limit.
func (d *demand) ceiling() int64 {
	most := int64(1)
	for _, c := range d.clients {
		most = max(most, c.requests)
	}
	n := float64(most * d.cost)
	if l := d.limit.Limit(); l.Burst > 0 {
		n = n * float64(l.N) / float64(l.Burst) * 2
	}
	high := int64(min(max(n, float64(d.limit.Limit().N)), weir.MaxUnits)) + 1
	low := d.limit.Limit().N // it can be kept, since it is
	for high-low > 1 {
		if middle := low + (high-low)/2; d.with(middle) != nil {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// denied plays the demand against a limit. Clients do not know of each other, so
// they are played one after the other.
func (d *demand) denied(limit *weir.Compiled) (denied int64) {
	if limit == nil {
		return math.MaxInt64
	}
	for _, c := range d.clients {
		if c.requests*d.cost > limit.Capacity() { // otherwise it all fits, at any time
			denied += d.deniedTo(c, limit)
		}
	}
	return denied
}

func (d *demand) deniedTo(c *client, limit *weir.Compiled) (denied int64) {
	var record weir.Record
	take := func(at, cost int64) bool {
		op := weir.Op{Key: "client", Limit: limit, Cost: cost}
		next, decision := op.Decide(record.State, record.Tail, weir.Micros(at))
		record.Keep(limit, next)
		return decision.Allowed
	}
	counts := limit.Limit().CountDenied
	for _, a := range c.arrivals {
		left := a.n
		if !counts && left > 1 {
			// All that fit at this instant are one charge.
			op := weir.Op{Key: "client", Limit: limit}
			fit := op.Peek(record.State, record.Tail, weir.Micros(a.at)).Remaining / d.cost
			if fit = min(fit, left); fit > 0 && take(a.at, fit*d.cost) {
				left -= fit
			}
			denied += left
			continue
		}
		for ; left > 0; left-- {
			if !take(a.at, d.cost) {
				denied++
			}
		}
	}
	return denied
}
