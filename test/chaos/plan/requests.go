package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

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
