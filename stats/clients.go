package stats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// MaxClients is the maximum number of clients in an answer.
const MaxClients = 100

// maxClientRules is the maximum number of rules of a client in an answer.
const maxClientRules = 8

// ClientsQuery selects a ranking of clients in any time range.
type ClientsQuery struct {
	From, To time.Time

	// Rule selects the decisions of one rule, as in TopQuery; those of a shadow rule are
	// the decisions that it would have made. Default "": the outcomes of requests.
	Rule string

	By By
	N  int // number of clients; default 10, at most MaxClients

	// Prefix, if not "", selects the clients whose key, or the value in it, begins with
	// this text: "user:al" and "al" both find "user:alice".
	Prefix string
}

// Clients is a ranking of clients, with the requests of each over time.
type Clients struct {
	Range
	Total    int64 // as in Top, for all clients
	Sampling int64 // as in Top
	Floor    int64 // the maximum of a client that is not listed, among those of the prefix
	Clients  []Client
}

// Client is one client of a ranking. Only steps in which the client was ranked have a
// value. In any other step it had at most as many requests as the floor of that step,
// which Count and Error include.
type Client struct {
	archive.Entry
	First, Last time.Time   // start of the first and of the last step with a count
	Values      []int64     // of each step
	Rules       []RuleCount // decisions of rules, as far as their rankings have the client; with ByDenied also of rules with other keys, which come last
}

// RuleCount is how often a rule made the selected decision for a client, or would have made
// it, if it is a shadow rule now.
type RuleCount struct {
	Rule   string `json:"rule"`
	Count  int64  `json:"count"`
	Shadow bool   `json:"shadow,omitempty"`

	// Other means that the rule denied another key of the requests, such as the address, and no
	// rule with the key of the client denied them.
	Other bool `json:"other,omitempty"`
}

// Clients returns the clients with the most requests in a time range, from the finest
// rankings that reach back to its start. They are at most two seconds old.
func (r *Recorder) Clients(ctx context.Context, q ClientsQuery) (*Clients, error) {
	if _, err := lengthOf(q.From, q.To); err != nil {
		return nil, err
	}
	q.N = cmp.Or(q.N, 10)
	switch {
	case q.By > ByDenied:
		return nil, wrongQuery("there is no such ranking; use total, allowed or denied")
	case q.N < 1 || q.N > MaxClients:
		return nil, wrongQuery("%d clients cannot be listed; ask for 1 to %d", q.N, MaxClients)
	}
	return ask(ctx, r, func(a archive.Store) (*Clients, error) { return r.clients(ctx, a, q) })
}

func (r *Recorder) clients(ctx context.Context, a archive.Store, q ClientsQuery) (*Clients, error) {
	g := r.planKept(a, archive.Top, q.From.Unix(), q.To.Unix())
	var slots []archive.Slot
	var ranked []*archive.Sketch
	sampling := int64(1)
	err := g.each(ctx, a, archive.Top, func(s archive.Slot) {
		sampling = max(sampling, s.Frame.Sampling)
		slots = append(slots, s)
		ranked = append(ranked, q.By.halves(s.Frame.Top[q.Rule])...)
	})
	if err != nil {
		return nil, err
	}
	sum := archive.SumSketches(ranked)
	if q.Prefix != "" {
		sum.Entries = slices.DeleteFunc(sum.Entries, func(e archive.Entry) bool { return !begins(e.Key, q.Prefix) })
	}
	sum.Trim(q.N)
	c := &Clients{Range: g.span(), Total: sum.Total, Sampling: sampling, Floor: sum.Floor}
	at := map[string]int{}
	rules := make([]map[string]*RuleCount, len(sum.Entries))
	for i, e := range sum.Entries {
		at[e.Key], rules[i] = i, map[string]*RuleCount{}
		c.Clients = append(c.Clients, Client{Entry: e, Values: make([]int64, g.points)})
	}
	for _, s := range slots {
		for name, ranking := range s.Frame.Top {
			id, isOthers := strings.CutPrefix(name, archive.Others)
			if isOthers && q.By != ByDenied {
				continue
			}
			for _, half := range q.By.halves(ranking) {
				for _, e := range half.Entries {
					i, listed := at[e.Key]
					if !listed {
						continue
					}
					if name == q.Rule {
						c.Clients[i].count(g, s.Start, e.Count)
					}
					if id != "" {
						one := rules[i][id]
						if one == nil {
							one = &RuleCount{Rule: id, Other: true}
							rules[i][id] = one
						}
						one.Count += e.Count
						one.Other = one.Other && isOthers
					}
				}
			}
		}
	}
	for i := range c.Clients {
		c.Clients[i].Rules = largest(rules[i])
		for j := range c.Clients[i].Rules {
			one := &c.Clients[i].Rules[j]
			p, own := r.index.Load().ByID(one.Rule)
			one.Shadow = own && p.shadow
		}
	}
	return c, nil
}

// halves are the sketches of a ranking that count.
func (b By) halves(r *archive.Ranking) []*archive.Sketch {
	switch {
	case r == nil:
		return nil
	case b == ByAllowed:
		return []*archive.Sketch{&r.Allowed}
	case b == ByDenied:
		return []*archive.Sketch{&r.Denied}
	}
	return []*archive.Sketch{&r.Allowed, &r.Denied}
}

// begins reports whether a key begins so, or the value behind its kind.
func begins(key, prefix string) bool {
	_, value, _ := strings.Cut(key, ":")
	return strings.HasPrefix(key, prefix) || strings.HasPrefix(value, prefix)
}

func (c *Client) count(g grid, start, n int64) {
	at := g.at(start)
	c.Values[at] += n
	when := g.time(int64(at))
	if c.First.IsZero() {
		c.First = when
	}
	c.Last = when
}

// largest orders the counts of rules, those with the key of the client first, and keeps the first
// ones.
func largest(counts map[string]*RuleCount) []RuleCount {
	all := make([]RuleCount, 0, len(counts))
	for _, one := range counts {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b RuleCount) int {
		if a.Other != b.Other {
			if b.Other {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule))
	})
	return all[:min(len(all), maxClientRules)]
}

// ClientSeries holds the requests of one client over time, as far as rankings contain
// the client.
type ClientSeries struct {
	Range
	Points   []ClientPoint // one for every step
	Floor    int64         // the maximum number of requests in a step without a count
	Sampling int64         // as in Top
}

// ClientPoint holds the requests of a client in one step, by outcome.
type ClientPoint struct {
	Time            time.Time
	Allowed, Denied int64
}

// ClientSeries returns the requests of one client in a time range.
func (r *Recorder) ClientSeries(ctx context.Context, key string, from, to time.Time) (*ClientSeries, error) {
	if _, err := lengthOf(from, to); err != nil {
		return nil, err
	}
	return ask(ctx, r, func(a archive.Store) (*ClientSeries, error) {
		g := r.planKept(a, archive.Top, from.Unix(), to.Unix())
		s := &ClientSeries{Range: g.span(), Sampling: 1}
		for i := range g.points {
			s.Points = append(s.Points, ClientPoint{Time: g.time(i)})
		}
		return s, g.each(ctx, a, archive.Top, func(slot archive.Slot) {
			s.Sampling = max(s.Sampling, slot.Frame.Sampling)
			if all := slot.Frame.Top[""]; all != nil {
				p := &s.Points[g.at(slot.Start)]
				p.Allowed += all.Allowed.Of(key)
				p.Denied += all.Denied.Of(key)
				s.Floor = max(s.Floor, all.Allowed.Floor, all.Denied.Floor)
			}
		})
	})
}
