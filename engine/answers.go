package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/estimate"
	"github.com/weirhq/weir/rule"
)

// maxLearned bounds the pairs of a rule and a model of which is known how long answers are. Clients can
// invent names of models.
const maxLearned = 500

// unusedAge is after how long a model without answers makes room for others, even if much is known of it.
const unusedAge = weir.Micros(24 * time.Hour / time.Microsecond)

// answers are how long the answers of language models were lately, and what is reserved for those that
// are open.
type answers struct {
	mu      sync.Mutex
	lengths map[answersOf]*lengths
	open    map[string]openParts // by rule
}

type answersOf struct{ rule, model string }

type lengths struct {
	used    weir.Micros // the time of the last answer
	tokens  estimate.Fair
	percent int // of the quantile that is known, if it is
	at      int64
	count   int // of the values that count; below 0 if that is not known
	enough  bool
}

// expected is how many tokens an answer has, by the quantile of a rule; 0 if that is not known.
func (a *answers) expected(c *rule.Entry, model string) int64 {
	percent := int(c.Tokens.Reserve.Quantile)
	if percent == 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lengths[answersOf{c.ID, model}]
	if l == nil {
		return 0
	}
	if l.percent != percent {
		tokens, known := l.tokens.Quantile(percent)
		if l.percent, l.at = percent, 0; known {
			l.at = max(1, int64(tokens))
		}
	}
	return l.at
}

// learn takes note of how long an answer was.
func (a *answers) learn(now weir.Micros, key answersOf, from estimate.Source, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.ofLocked(now, key); l != nil {
		l.used = now
		l.tokens.Add(now.Time(), from, uint64(tokens))
		l.percent, l.count = 0, -1
	}
}

// ofLocked returns what is known of a model, or nil if there is no room for one more.
func (a *answers) ofLocked(now weir.Micros, key answersOf) *lengths {
	l := a.lengths[key]
	if l != nil || len(a.lengths) >= maxLearned && !a.forgetLocked(now) {
		return l
	}
	if a.lengths == nil {
		a.lengths = map[answersOf]*lengths{}
	}
	l = new(lengths)
	a.lengths[key] = l
	return l
}

// forgetLocked forgets the model of which least is known, and of those the one that had no answer for longest. It does not
// forget one whose quantile may be known for one that is new, and reports whether there was another.
func (a *answers) forgetLocked(now weir.Micros) bool {
	var key answersOf
	var least *lengths
	for k, l := range a.lengths {
		switch {
		case now-l.used > unusedAge:
			l.count, l.enough = 0, false
		case l.count < 0:
			l.count, l.enough = l.tokens.Len()
		}
		if least == nil || cmp.Or(cmp.Compare(l.count, least.count), cmp.Compare(l.used, least.used)) < 0 {
			key, least = k, l
		}
	}
	if least.enough {
		return false
	}
	delete(a.lengths, key)
	return true
}

// Reserved is what the requests that an engine serves have reserved under one rule that counts tokens.
type Reserved struct {
	Rule     string `json:"rule"`
	Requests int64  `json:"requests"`
	Units    int64  `json:"units"`  // that are reserved
	Excess   int64  `json:"excess"` // that the requests may cost besides, so that limits can be exceeded by so much

	Display ReservedDisplay `json:"display,omitzero"` // of a rule that counts money
}

// openParts is what is kept of it.
type openParts struct {
	Reserved
	money bool
}

// ReservedDisplay is the units of [Reserved] as people read them, such as "$13.37".
type ReservedDisplay struct {
	Units  string `json:"units"`
	Excess string `json:"excess"`
}

// Reserved returns what is reserved now, by rule, for the requests that this engine serves; see
// [Gate.Serve].
func (e *Engine) Reserved() []Reserved {
	a := &e.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Reserved, 0, len(a.open))
	for _, r := range a.open {
		if r.money {
			r.Display = ReservedDisplay{rule.DollarText(r.Units), rule.DollarText(r.Excess)}
		}
		all = append(all, r.Reserved)
	}
	slices.SortFunc(all, func(x, y Reserved) int { return cmp.Compare(x.Rule, y.Rule) })
	return all
}

// reserve adds requests, or takes them away.
func (a *answers) reserve(parts []HoldPart, requests int64) {
	for i := range parts {
		if p := &parts[i]; p.Rule.Tokens != nil {
			a.change(p.Rule, Reserved{Requests: requests, Units: requests * p.Reserved, Excess: requests * max(0, p.most-p.Reserved)})
		}
	}
}

func (a *answers) change(of *rule.Entry, by Reserved) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string]openParts{}
	}
	r := a.open[of.ID]
	r.Rule, r.Requests, r.Units, r.Excess = of.ID, r.Requests+by.Requests, r.Units+by.Units, r.Excess+by.Excess
	r.money = of.Money()
	if a.open[of.ID] = r; r.Requests == 0 {
		delete(a.open, of.ID)
	}
}
