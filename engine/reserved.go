package engine

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

const (
	otherModels  = "(other)" // the name under which the reservations for all others of a rule are counted
	maxModelName = 200       // bytes of a name that is counted apart
)

// Reserved is what the requests that an engine serves have reserved under one rule that counts tokens, for one model, and
// what became of it. Sums of all models of a rule are exact.
type Reserved struct {
	Rule     string `json:"rule"`
	Model    string `json:"model,omitempty"` // that requests name; "(other)" if that is not counted apart
	Requests int64  `json:"requests"`        // that are open
	Units    int64  `json:"units"`           // that are reserved for them
	Excess   int64  `json:"excess"`          // that they may cost besides, so that limits can be exceeded by so much
	Used     int64  `json:"used"`            // units of all requests that were settled
	Refunded int64  `json:"refunded"`        // units that had been reserved for those, and were not used

	Currency string          `json:"currency,omitempty"` // whose millionths units are, such as "usd", if the rule counts money
	Display  ReservedDisplay `json:"display,omitzero"`   // of such a rule
}

// ReservedDisplay is the units of [Reserved] as people read them, such as "$13.37".
type ReservedDisplay struct {
	Units    string `json:"units"`
	Excess   string `json:"excess"`
	Used     string `json:"used"`
	Refunded string `json:"refunded"`
}

type reservedFor struct{ rule, model, currency string }

// reservations are what is counted under one rule for one model.
type reservations struct {
	Reserved
	warned weir.Micros // when the log had last that usage was not plausible; 0 for never
}

// Reserved returns what is reserved now for the requests that this engine serves, and what of it was used since the engine
// was made, by rule and model; see [Gate.Serve]. The first 500 pairs of a rule and a model have
// entries of their own as long as something is reserved or was used.
func (e *Engine) Reserved() []Reserved {
	table := e.installed.Load().table
	a := &e.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Reserved
	for key, counted := range a.reserved {
		r := counted.Reserved
		if r.Requests == 0 && table.Find(r.Rule) == nil {
			delete(a.reserved, key)
			continue
		}
		if c := r.Currency; c != "" {
			r.Display = ReservedDisplay{rule.MoneyText(c, r.Units), rule.MoneyText(c, r.Excess), rule.MoneyText(c, r.Used), rule.MoneyText(c, r.Refunded)}
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y Reserved) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Model, y.Model), cmp.Compare(x.Currency, y.Currency))
	})
	return all
}

// reserve counts what a request has reserved.
func (a *answers) reserve(parts []HoldPart, model string) {
	for i := range parts {
		if p := &parts[i]; p.Rule.Tokens != nil {
			a.mu.Lock()
			p.counted = a.reservedLocked(reservedFor{p.Rule.ID, model, p.Rule.Money()})
			p.counted.add(&Reserved{Requests: 1, Units: p.Reserved, Excess: p.excess()})
			a.mu.Unlock()
		}
	}
}

// reservedLocked is where a request is counted.
func (a *answers) reservedLocked(of reservedFor) *reservations {
	if len(of.model) > maxModelName {
		of.model = otherModels
	}
	if r := a.reserved[of]; r != nil {
		return r
	}
	if of.model != otherModels && (len(a.reserved) >= maxLearned || !utf8.ValidString(of.model)) {
		of.model = otherModels
		return a.reservedLocked(of)
	}
	if a.reserved == nil {
		a.reserved = map[reservedFor]*reservations{}
	}
	of.model = strings.Clone(of.model) // which may be a part of a request
	r := &reservations{Reserved: Reserved{Rule: of.rule, Model: of.model, Currency: of.currency}}
	a.reserved[of] = r
	return r
}

// count ends what is shown as reserved, and adds what was used, unless the hold has expired or others have ended it.
func (h *Hold) count(done *Settled, used Used) {
	for i := range h.Parts {
		p := &h.Parts[i]
		if p.counted == nil {
			continue
		}
		by := Reserved{Requests: -1, Units: -p.Reserved, Excess: -p.excess()}
		if done.State == weir.HoldPending || done.State == weir.HoldSettled && !done.Repeated {
			first := p.Reserved
			for _, s := range h.steps {
				if s.part == i {
					first, by.Used = first-s.reserved, by.Used+s.used
				}
			}
			by.Used += used.Of(p.Rule.ID, p.Rule.CostUnit(), first)
			by.Refunded = max(0, p.Reserved-by.Used)
		}
		h.engine.answers.change(p.counted, by)
	}
}

// excess is how much the request may cost beyond what is reserved.
func (p *HoldPart) excess() int64 { return max(0, p.most-p.Reserved) }

// change adds to what is counted. What no request is open for and nothing was used of is counted with the others, so that
// names that clients invent do not take the place of models.
func (a *answers) change(r *reservations, by Reserved) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.add(&by); r.Requests > 0 || r.Used > 0 || r.Model == otherModels {
		return
	}
	delete(a.reserved, reservedFor{r.Rule, r.Model, r.Currency})
	if r.Refunded > 0 {
		a.reservedLocked(reservedFor{r.Rule, otherModels, r.Currency}).add(&Reserved{Refunded: r.Refunded})
	}
}

// add adds numbers. Those of settled requests stay exact numbers, whatever upstreams say.
func (r *Reserved) add(by *Reserved) {
	r.Requests, r.Units, r.Excess = r.Requests+by.Requests, r.Units+by.Units, r.Excess+by.Excess
	r.Used, r.Refunded = min(r.Used+by.Used, weir.MaxUnits), min(r.Refunded+by.Refunded, weir.MaxUnits)
}
