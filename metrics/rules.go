package metrics

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
)

// sayings are what rules say, the first outcomes.
const sayings = engine.OutcomeDegradedDenied + 1

// ruleCounters are those of one rule, in cache lines of their own.
type ruleCounters struct {
	stripes [ruleStripes]ruleStripe
	holds   atomic.Pointer[holdCounters]  // nil as long as there were none
	exprs   atomic.Pointer[expressions]   // nil as long as there were none
	places  atomic.Pointer[placeCounters] // nil as long as there were none
	levels  atomic.Pointer[tally.Levels]  // nil if the rule has none

	spending atomic.Pointer[spending] // nil as long as nothing was spent
	warned   atomic.Uint64
	_        [64 - 48]byte
}

// ruleStripes are fewer than stripes, because there may be many rules.
const ruleStripes = stripes / 2

type ruleStripe struct {
	said [sayings]atomic.Uint64
	_    [64 - 8*sayings]byte
}

// say counts for a stripe of those that count requests.
func (c *ruleCounters) say(stripe uint64, said engine.Outcome) {
	c.stripes[stripe%ruleStripes].said[said].Add(1)
}

// said is how often the rule has said something.
func (c *ruleCounters) said(s engine.Outcome) (n uint64) {
	for i := range c.stripes {
		n += c.stripes[i].said[s].Load()
	}
	return n
}

// ObserveWarning implements [engine.WarningObserver].
func (m *Metrics) ObserveWarning(w engine.Warning) {
	m.rules.Load().Find(w.Rule).warned.Add(1)
}

// expressions are those of a rule, and how often those that it had before have failed.
type expressions struct {
	of     *rule.Entry
	before int64
}

func (x *expressions) failures() int64 { return x.before + x.of.Failures() }

// follow goes on counting with what the rule has become.
func (c *ruleCounters) follow(e *rule.Entry) {
	switch last := c.exprs.Load(); {
	case last == nil && e.Evaluates():
		c.exprs.Store(&expressions{of: e})
	case last != nil && last.of != e:
		c.exprs.Store(&expressions{e, last.failures()})
	}
}

// labelled is a rule that has series of its own.
type labelled struct {
	label string
	mode  rule.Mode
	warns bool
	*ruleCounters
}

// inForce are the rules that were installed last. It never changes, so that it is
// read without a lock.
type inForce struct {
	*tally.Index[labelled]
	modes   [rule.Off + 1]int
	version int64
	since   time.Time
}

// Install implements [engine.RuleObserver]. Results of rules that are not installed are
// counted as "(other)". A rule that keeps its id keeps its counts; the series of a rule
// that was removed, or is off, are removed.
func (m *Metrics) Install(table *rule.Table, version int64) {
	m.installing.Lock()
	defer m.installing.Unlock()
	m.table, m.version, m.since = table.Rules(), version, m.options.Clock()
	m.install()
	m.rulesStale.Store(false)
}

// InstallSource tells the document of the rules that were installed, for weir_rules_hash. The number has
// only 16 bits: everybody may read metrics, and a document may contain keys that somebody could guess.
func (m *Metrics) InstallSource(document []byte) {
	sum := sha256.Sum256(document)
	hash := binary.BigEndian.Uint16(sum[:])
	m.rulesHash.Store(&hash)
}

// InstallDemands implements [engine.RuleObserver]. These rules share the room that
// MaxRules leaves, in the given order; several of them may have the same id.
func (m *Metrics) InstallDemands(rules []*rule.Entry) {
	m.installing.Lock()
	defer m.installing.Unlock()
	m.demanded = rules
	m.install()
}

// install puts what was installed into force. It needs the lock.
func (m *Metrics) install() {
	next := &inForce{version: m.version, since: m.since}
	var candidates []*rule.Entry
	for _, e := range m.table {
		next.modes[e.Mode]++
		if e.Mode != rule.Off {
			candidates = append(candidates, e)
		}
	}
	slices.SortFunc(candidates, func(a, b *rule.Entry) int { return cmp.Compare(a.ID, b.ID) })
	rules := tally.Rules[labelled]{
		Entries: append(candidates, m.demanded...), Most: m.options.MaxRules, Make: m.labelled,
		Other: &labelled{label: tally.Other, ruleCounters: &m.others},
	}
	if last := m.rules.Load(); last != nil {
		rules.Before, rules.KeepRetired = last.Index, true // their series are gone
	}
	next.Index = rules.Index()
	m.rules.Store(next)
}

// labelled returns a rule with the counters that it has had, or new ones; nil if its id cannot
// be a label. All those that [rule.Parse] accepts can.
func (m *Metrics) labelled(e *rule.Entry, _ int) *labelled {
	if !utf8.ValidString(e.ID) || e.ID == tally.Other {
		return nil
	}
	l := &labelled{e.ID, e.Mode, len(e.Warn) > 0, new(ruleCounters)}
	if last := m.rules.Load(); last != nil {
		if had, own := last.ByID(e.ID); own {
			l.ruleCounters = had.ruleCounters
		}
	}
	l.follow(e)
	l.levels.Store(l.levels.Load().For(e))
	if e.Concurrent() {
		l.flying(m.options.Clock) // so that its series begin at 0
	}
	return l
}

// ReloadFailed records that newer rules are invalid. The next Install clears it.
func (m *Metrics) ReloadFailed() { m.reloaded(&m.rulesStale, false) }

// ClientsReloaded records whether the newest directory of clients is in force, as far as the store can be read.
func (m *Metrics) ClientsReloaded(ok bool) { m.reloaded(&m.clientsStale, ok) }

// PricesReloaded records whether the newest price list is in force.
func (m *Metrics) PricesReloaded(ok bool) { m.reloaded(&m.pricesStale, ok) }

// EnvoyReloaded records whether the newest configuration for Envoy is in force.
func (m *Metrics) EnvoyReloaded(ok bool) { m.reloaded(&m.envoyStale, ok) }

func (m *Metrics) reloaded(stale *atomic.Bool, ok bool) {
	if !ok {
		m.reloadFailed.Add(1)
	}
	stale.Store(!ok)
}
