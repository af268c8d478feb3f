package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/estimate"
	"github.com/weirhq/weir/rule"
)

// maxLearned bounds the pairs of a rule and a model of which is known how long answers are. Clients can
// invent names of models.
const maxLearned = 500

// answers are how long the answers of language models were lately, and what is reserved for those that
// are open.
type answers struct {
	mu      sync.Mutex
	turn    uint64
	lengths map[answersOf]*lengths
	open    map[string]openParts // by rule
}

type answersOf struct{ rule, model string }

type lengths struct {
	used    uint64 // the turn of the last answer
	tokens  estimate.Fair
	percent int // of the quantile that is known, if it is
	at      int64
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
func (a *answers) learn(c *rule.Entry, model string, client uint32, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := answersOf{c.ID, model}
	l := a.lengths[key]
	if l == nil {
		if a.lengths == nil {
			a.lengths = map[answersOf]*lengths{}
		}
		if len(a.lengths) >= maxLearned {
			a.forgetLocked()
		}
		l = new(lengths)
		a.lengths[key] = l
	}
	a.turn++
	l.used, l.percent = a.turn, 0
	l.tokens.Add(client, uint64(tokens))
}

// forgetLocked forgets the model that had no answer for longest.
func (a *answers) forgetLocked() {
	var oldest answersOf
	turn := a.turn + 1
	for key, l := range a.lengths {
		if l.used < turn {
			oldest, turn = key, l.used
		}
	}
	delete(a.lengths, oldest)
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
