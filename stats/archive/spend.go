package archive

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// MaxSpenders is how many lines of Frame.Spend are counted apart, besides one for the others of each rule and level.
const MaxSpenders = 1000

// Spender identifies who spends money: a client of a rule, with a model. Key and Model are both Other for those
// beyond MaxSpenders, who spend least of their currency. The Level is "" if the rule has none, and the Currency is such as "usd".
type Spender struct{ Rule, Level, Currency, Key, Model string }

// Spent is what requests have cost.
type Spent struct {
	Requests int64
	Refunds  int64 // requests that were given back
	Units    int64 // millionths of the currency, without those that were given back
	Input    int64 // tokens, as far as they are known
	Output   int64
}

// Add adds what others have cost. No number becomes so large that it could not be kept.
func (s *Spent) Add(other *Spent) {
	theirs := other.fields()
	for i, n := range s.fields() {
		*n = max(-maxExact, min(*n+max(-maxExact, min(*theirs[i], maxExact)), maxExact))
	}
}

func (s *Spent) fields() [5]*int64 {
	return [...]*int64{&s.Requests, &s.Refunds, &s.Units, &s.Input, &s.Output}
}

// Spender returns what a line has spent, for adding to it.
func (f *Frame) Spender(s Spender) *Spent { return entry(&f.Spend, s) }

// trimSpend counts those who spend least as the others of their rule, level and currency, so that no sum changes. Amounts of
// several currencies do not compare, so each keeps its first, then each its second, and so on.
func (f *Frame) trimSpend() {
	isRest := func(s Spender) bool { return s.Key == Other && s.Model == Other }
	all := slices.DeleteFunc(slices.Collect(maps.Keys(f.Spend)), isRest)
	if len(all) <= MaxSpenders {
		return
	}
	slices.SortFunc(all, func(a, b Spender) int {
		return cmp.Or(cmp.Compare(f.Spend[b].Units, f.Spend[a].Units), compareSpenders(a, b))
	})
	place, last := make(map[Spender]int, len(all)), map[string]int{}
	for _, s := range all {
		last[s.Currency]++
		place[s] = last[s.Currency]
	}
	slices.SortStableFunc(all, func(a, b Spender) int { return cmp.Compare(place[a], place[b]) })
	for _, s := range all[MaxSpenders:] {
		f.Spender(Spender{s.Rule, s.Level, s.Currency, Other, Other}).Add(f.Spend[s])
		delete(f.Spend, s)
	}
}

func compareSpenders(a, b Spender) int {
	return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Level, b.Level), strings.Compare(a.Currency, b.Currency), strings.Compare(a.Key, b.Key), strings.Compare(a.Model, b.Model))
}

func (s *Spent) weight() int64 { return s.Requests + s.Refunds }

func (f *Frame) hasOtherCurrency() bool {
	for s := range f.Spend {
		if s.Currency != rule.Dollars {
			return true
		}
	}
	return false
}

// spender is of dollars in versions without currencies.
func (c *codec) spender(s *Spender) {
	c.texts(&s.Rule, &s.Level, &s.Key, &s.Model)
	if s.Currency = cmp.Or(s.Currency, rule.Dollars); c.version > 11 {
		c.text(&s.Currency)
	}
}
