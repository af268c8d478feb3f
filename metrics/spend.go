package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
)

var _ engine.SpendObserver = (*Metrics)(nil)

// maxModels is how many models have series of their own under each rule. Clients can invent names.
const maxModels = 50

// spending is what requests have cost under one rule that counts money.
type spending struct {
	models  tally.Names
	byModel sync.Map // of the label of a model, *spent
}

// spent is in millionths of a dollar.
type spent struct{ charged, refunded atomic.Uint64 }

// ObserveSpend implements [engine.SpendObserver].
func (m *Metrics) ObserveSpend(s engine.Spend) {
	c, _ := m.rules.Load().ByID(s.Rule)
	tally.Made(&c.spending, func() *spending { return &spending{models: tally.Names{Max: maxModels}} }).add(s.Model, s.Units)
}

func (s *spending) add(model string, micros int64) {
	model = s.models.Of(model)
	known, found := s.byModel.Load(model)
	if !found {
		known, _ = s.byModel.LoadOrStore(model, new(spent))
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
	s.byModel.Range(func(model, of any) bool {
		one := of.(*spent)
		counterOf(ch, spentDesc, inDollars(one.charged.Load()), label, model.(string), "charged")
		counterOf(ch, spentDesc, inDollars(one.refunded.Load()), label, model.(string), "refunded")
		return true
	})
}

func inDollars[N int64 | uint64](micros N) float64 { return float64(micros) / 1e6 }
