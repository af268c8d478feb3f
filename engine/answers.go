package engine

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/estimate"
	"github.com/weirhq/weir/rule"
)

// maxLearned bounds the pairs of a rule and a model of which is known how long answers are, and those of which
// reservations are counted apart. Clients can invent names of models.
const maxLearned = 500

// unusedAge is after how long a model without answers makes room for others, even if much is known of it.
const unusedAge = weir.Micros(24 * time.Hour / time.Microsecond)

// answers are how long the answers of language models were lately, and what is reserved for them.
type answers struct {
	mu       sync.Mutex
	lengths  map[answersOf]*lengths
	reserved map[reservedFor]*reservations
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

// Learned is how long the answers of a model were lately under a rule that reserves by a quantile of that, as engines tell
// each other. Only they can read the data, which has less than 8 KiB.
type Learned struct {
	Rule, Model string
	Data        []byte
}

// leastLearned is how many values engines tell each other at least: there are others for every quantile.
const leastLearned = 16

// Learned returns what this engine has learned under the rules in force, what is known best first. It leaves out models of
// which little is known. Others wait for the engine while one model is written, and not for all of them.
func (e *Engine) Learned() iter.Seq[Learned] {
	return func(yield func(Learned) bool) {
		for _, k := range e.answers.knownBest(e.installed.Load().table) {
			data, still := e.answers.encode(k)
			if still && !yield(Learned{k.rule, k.model, data}) {
				return
			}
		}
	}
}

// knownBest returns the pairs under rules that learn of which enough is known to tell others, those of which most is first.
func (a *answers) knownBest(table *rule.Table) []answersOf {
	a.mu.Lock()
	keys := slices.Collect(maps.Keys(a.lengths))
	a.mu.Unlock()
	count := make(map[answersOf]int, len(keys))
	for _, k := range keys {
		a.mu.Lock() // for each, because counting takes its time
		if l := a.lengths[k]; l != nil && learns(table, k.rule) {
			count[k], _ = l.known()
		}
		a.mu.Unlock()
	}
	keys = slices.DeleteFunc(keys, func(k answersOf) bool { return count[k] < leastLearned })
	slices.SortFunc(keys, func(x, y answersOf) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x.rule, y.rule), cmp.Compare(x.model, y.model))
	})
	return keys
}

// encode writes what is known of a model, if it was not forgotten.
func (a *answers) encode(key answersOf) (data []byte, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lengths[key]
	if l == nil {
		return nil, false
	}
	data, _ = l.tokens.AppendBinary(nil) // which has no error
	return data, true
}

// Learn adds what other engines have learned, or this one before a restart. It ignores rules that do not learn, and what it
// knows already.
func (e *Engine) Learn(l Learned) error {
	var theirs estimate.Fair
	if err := theirs.UnmarshalBinary(l.Data); err != nil {
		return fmt.Errorf("engine: the answers of %.100q under %.100q: %w", l.Model, l.Rule, err)
	}
	if !learns(e.installed.Load().table, l.Rule) {
		return nil
	}
	now := e.clock()
	a := &e.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	if mine := a.ofLocked(now, answersOf{l.Rule, l.Model}); mine != nil && mine.tokens.Merge(now.Time(), &theirs) {
		mine.percent, mine.count = 0, -1
		mine.used = max(mine.used, weir.MicrosOf(mine.tokens.Last()))
	}
	return nil
}

// learns reports whether a rule is in force that reserves by a quantile.
func learns(table *rule.Table, id string) bool {
	c := table.Find(id)
	return c != nil && c.Tokens != nil && c.Tokens.Reserve.Quantile > 0
}

// known is how many values count, and whether they may be enough for a quantile.
func (l *lengths) known() (n int, enough bool) {
	if l.count < 0 {
		l.count, l.enough = l.tokens.Len()
	}
	return l.count, l.enough
}

// forgetLocked forgets the model of which least is known, and of those the one that had no answer for longest. It does not
// forget one whose quantile may be known for one that is new, and reports whether there was another.
func (a *answers) forgetLocked(now weir.Micros) bool {
	var key answersOf
	var least *lengths
	for k, l := range a.lengths {
		if l.known(); now-l.used > unusedAge {
			l.count, l.enough = 0, false
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
