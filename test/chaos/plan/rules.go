// Package plan draws from a seed what a chaos run does: the rules, the requests and the
// faults. The same seed draws the same plan.
package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// Instances is how many weirs share the store, and with it every limit.
const Instances = 3

// Rule is a rule of the document, in the form that the checker needs.
type Rule struct {
	ID        string
	Paths     []string // a request for one of these falls under it
	Key       string   // user, ip or global
	Limits    []weir.Limit
	OnFailure string // open, closed or local
	OnExpiry  string // keep or release; "" if nobody reserves under it
	MaxCost   int64  // no request costs more
	Wide      bool   // so much that no client is ever denied
	Busy      bool   // asked for so often that instances lease units of it
}

// Lease is for how long instances lease units of every limit of which they can.
const Lease = time.Second

// Rules are a document of rules.
type Rules []Rule

// asked is about how many units a second a run asks of one key of a rule.
const asked = 7

// DrawRules draws rules of every algorithm, in each variant that an algorithm has, and pairs
// of rules that share a path, so that one request is charged under both or neither.
func DrawRules(r *rand.Rand) Rules {
	var rules Rules
	add := func(limit weir.Limit) {
		id := fmt.Sprintf("r%02d-%s", len(rules), limit.Algorithm)
		rules = append(rules, draw(r, id, limit))
	}
	for _, a := range weir.Algorithms() {
		add(weir.Limit{Algorithm: a})
		add(weir.Limit{Algorithm: a})
		switch a {
		case weir.TokenBucket, weir.LeakyBucket:
		default:
			add(weir.Limit{Algorithm: a, CountDenied: true})
		}
	}
	add(weir.Limit{Algorithm: weir.LeakyBucket, Shape: true})
	for i, order := 0, r.Perm(len(rules)); i < 4; i++ {
		path := fmt.Sprintf("/pair%d", i)
		for _, n := range order[2*i : 2*i+2] {
			rules[n].Paths = append(rules[n].Paths, path)
		}
	}
	for _, a := range weir.Algorithms() {
		if a != weir.InFlight {
			rules = append(rules, drawBusy(r, a))
		}
	}
	return append(rules, Rule{
		ID: "wide", Paths: []string{"/wide"}, Key: "user", OnFailure: "closed", MaxCost: 1, Wide: true,
		Limits: []weir.Limit{{N: 1_000_000, Burst: 1_000_000, Period: time.Second}},
	})
}

// draw makes a rule of a limit that lacks its numbers.
func draw(r *rand.Rand, id string, limit weir.Limit) Rule {
	rule := Rule{
		ID: id, Paths: []string{"/" + id}, MaxCost: 1 + r.Int64N(3),
		Key:       []string{"user", "user", "ip", "global"}[r.IntN(4)],
		OnFailure: []string{"open", "closed", "local", "local"}[r.IntN(4)],
	}
	periods := []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, time.Hour}
	period := periods[r.IntN(len(periods))]
	rule.Limits = []weir.Limit{numbered(r, limit, period, rule.Key)}
	if !limit.Shape && r.IntN(4) == 0 && period < 10*time.Second {
		rule.Limits = append(rule.Limits, numbered(r, limit, time.Hour, rule.Key))
		rule.Limits[1].Burst = rule.Limits[0].Burst // a rule has one
	}
	for _, l := range rule.Limits {
		rule.MaxCost = min(rule.MaxCost, l.N)
	}
	return rule
}

// drawBusy makes a rule for all clients, of which so much is asked that every instance leases units.
func drawBusy(r *rand.Rand, a weir.Algorithm) Rule {
	id := "busy-" + a.String()
	limit := weir.Limit{Algorithm: a, Period: []time.Duration{20 * time.Second, 30 * time.Second, time.Hour}[r.IntN(3)]}
	limit.N = 150 + r.Int64N(150)
	if limit.Period == time.Hour {
		limit.N *= 5
	}
	if a == weir.TokenBucket || a == weir.LeakyBucket {
		limit.Burst = limit.N
	}
	if a == weir.SlidingBuckets {
		limit.Buckets = 10
	}
	return Rule{ID: id, Paths: []string{"/" + id}, Key: "global", OnFailure: []string{"closed", "local"}[r.IntN(2)], MaxCost: 1 + r.Int64N(3), Limits: []weir.Limit{limit}, Busy: true}
}

// numbered gives a limit its period and less units than are asked for.
func numbered(r *rand.Rand, limit weir.Limit, period time.Duration, key string) weir.Limit {
	limit.Period = period
	if period == time.Hour {
		limit.N = 40 + r.Int64N(200)
	} else {
		limit.N = max(3, int64(period.Seconds()*asked*(0.2+0.6*r.Float64())))
	}
	if key == "global" {
		limit.N *= Clients / 2
	}
	switch limit.Algorithm {
	case weir.TokenBucket, weir.LeakyBucket:
		limit.Burst = limit.N
		if r.IntN(2) == 0 {
			limit.Burst = max(3, limit.N*r.Int64N(20)/10)
		}
	case weir.SlidingBuckets:
		limit.Buckets = []int{5, 10, 60}[r.IntN(3)]
	}
	return limit
}

// YAML is the document as weir reads it.
func (rules Rules) YAML() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, r := range rules {
		l := r.Limits[0]
		if l.Algorithm == weir.InFlight {
			fmt.Fprintf(&b, "  - {id: %s, match: {path: [%s]}, key: %s, concurrency: %d, hold_ttl: %s, on_failure: %s}\n",
				r.ID, strings.Join(r.Paths, ", "), r.Key, l.N, period(l.Period), r.OnFailure)
			continue
		}
		fmt.Fprintf(&b, "  - id: %s\n    match: {path: [%s]}\n    key: %s\n    algorithm: %s\n    on_failure: %s\n",
			r.ID, strings.Join(r.Paths, ", "), r.Key, l.Algorithm, r.OnFailure)
		var limits []string
		for _, l := range r.Limits {
			limits = append(limits, fmt.Sprintf("%d/%s", l.N, period(l.Period)))
		}
		fmt.Fprintf(&b, "    limits: [%s]\n", strings.Join(limits, ", "))
		if l.Burst > 0 {
			fmt.Fprintf(&b, "    burst: %d\n", l.Burst)
		}
		if l.Buckets > 0 {
			fmt.Fprintf(&b, "    buckets: %d\n", l.Buckets)
		}
		if l.CountDenied {
			b.WriteString("    count_denied: true\n")
		}
		if l.Shape {
			b.WriteString("    shape: true\n")
		}
		if r.OnExpiry != "" {
			fmt.Fprintf(&b, "    on_expiry: %s\n", r.OnExpiry)
		}
	}
	return b.String()
}

func period(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// Under are the rules that a request for the path falls under.
func (rules Rules) Under(path string) (under []*Rule) {
	for i := range rules {
		if slices.Contains(rules[i].Paths, path) {
			under = append(under, &rules[i])
		}
	}
	return under
}

// Clients is how many users there are, and how many addresses.
const Clients = 4

// Request is what a client asks weir about.
type Request struct {
	Path string `json:"path"`
	User string `json:"user"`
	IP   string `json:"ip"`
	Cost int64  `json:"cost"`
}

// Traffic draws requests that fall under rules.
type Traffic struct {
	rules Rules
	paths []string
	costs map[string]int64 // the most that a request for the path may cost
}

// NewTraffic prepares to draw requests for every path that a rule names.
func NewTraffic(rules Rules) *Traffic {
	t := &Traffic{rules: rules, costs: map[string]int64{}}
	for _, r := range rules {
		for _, path := range r.Paths {
			if most, ok := t.costs[path]; !ok || r.MaxCost < most {
				t.costs[path] = r.MaxCost
			}
			if !slices.Contains(t.paths, path) {
				t.paths = append(t.paths, path)
				if r.Busy {
					t.paths = append(t.paths, path)
				}
			}
		}
	}
	return t
}

// Draw draws a request.
func (t *Traffic) Draw(r *rand.Rand) Request {
	path := t.paths[r.IntN(len(t.paths))]
	return Request{
		Path: path, User: fmt.Sprintf("u%d", r.IntN(Clients)), IP: fmt.Sprintf("10.0.0.%d", 1+r.IntN(Clients)),
		Cost: 1 + r.Int64N(t.costs[path]),
	}
}

// KeyOf is the key that a request has under a rule, as weir writes it.
func (r *Rule) KeyOf(q *Request) string {
	switch r.Key {
	case "user":
		return "user:" + q.User
	case "ip":
		return "ip:" + q.IP
	}
	return "global"
}
