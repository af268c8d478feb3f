package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
)

// maxModels is how many models have series of their own under each rule. Clients can invent names.
const maxModels = 50

// spending is what requests have cost under one rule that counts money.
type spending struct {
	models  tally.Names
	byModel sync.Map // of a spentFor, *spent
}

// spentFor has the labels of a series.
type spentFor struct{ model, currency string }

// spent is in millionths of the currency.
type spent struct{ charged, refunded atomic.Uint64 }

// ObserveSpend implements [engine.SpendObserver].
func (m *Metrics) ObserveSpend(s engine.Spend) {
	c, _ := m.rules.Load().ByID(s.Rule)
	tally.Made(&c.spending, func() *spending { return &spending{models: tally.Names{Max: maxModels}} }).add(s.Model, s.Currency, s.Units)
}

func (s *spending) add(model, currency string, micros int64) {
	of := spentFor{s.models.Of(model), currency}
	known, found := s.byModel.Load(of)
	if !found {
		known, _ = s.byModel.LoadOrStore(of, new(spent))
	}
	if one := known.(*spent); micros < 0 {
		one.refunded.Add(uint64(-micros))
	} else {
		one.charged.Add(uint64(micros))
	}
}

// collect shows what was spent under a rule, if it counts money.
func (s *spending) collect(ch chan<- prometheus.Metric, label string) {
	if s == nil {
		return
	}
	s.byModel.Range(func(labels, of any) bool {
		l, one := labels.(spentFor), of.(*spent)
		counterOf(ch, spentDesc, float64(one.charged.Load())/1e6, label, l.model, l.currency, "charged")
		counterOf(ch, spentDesc, float64(one.refunded.Load())/1e6, label, l.model, l.currency, "refunded")
		return true
	})
}
