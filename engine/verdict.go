package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Verdict is the answer to one request. It can be reused for the next request, which
// then allocates nothing. Everything it points to is valid until then.
type Verdict struct {
	Allowed bool

	// Reason tells why the request was allowed or denied.
	Reason Reason

	// Delay is how long to delay an allowed request.
	Delay time.Duration

	// RetryAfter is the time to wait after a denial: the longest of all limits that
	// deny, so that no client retries too early. It is weir.Never if waiting does not
	// help, and 0 if no limit denies.
	RetryAfter time.Duration

	// Degraded is the reason why the store was unavailable, or ErrNoRules; nil if it was
	// available.
	Degraded error

	// Hold identifies what Reserve has reserved; zero if nothing was. It expires at
	// HoldExpires, by the store's clock.
	Hold        weir.HoldID
	HoldExpires weir.Micros

	// Unheld reports that Reserve has charged an allowed request without a hold, because
	// the store had no place for one. What was charged stays.
	Unheld bool

	// Priority is that of the request: its own, else the highest that a rule gives it, else
	// rule.Normal.
	Priority rule.Priority

	// Version is the version of the rules that were used.
	Version int64

	// Results are the results of all limits that were checked: enforced rules first, then
	// shadow and soft rules.
	Results []Result

	timing
	upTo    [places]int // where each place ends in Results
	speaker int         // of Results, from 1

	// What Check works with.
	hits      []rule.Hit
	keys      []byte
	ends      []int // of the keys of one rule
	ops       []weir.Op
	decisions []weir.Decision
	failed    []error   // why the store did not decide each of the first results; nil if it did, or decided none
	how       *charging // nil for a plain check
	room      charging  // of a reservation
	peeked    bool      // nothing is charged
	penalties int       // among Results
	places    int       // among Results, which limit how many requests are in flight
	warns     bool      // a rule among Results has thresholds
	counts    bool      // an enforced rule among Results counts denied requests

	waitUpTo time.Duration // for a place; 0 if no rule lets it wait
	shares   bool          // a rule among Results has shares
}

// place is what becomes of a result.
type place int

const (
	enforced       place = iota // all of them are charged, or none; any denies
	shadow                      // charged if the request is allowed
	countingShadow              // charged whatever becomes of the request
	places
)

func placeOf(c *rule.Entry) place {
	switch {
	case c.Mode.Denies():
		return enforced
	case c.CountDenied:
		return countingShadow
	}
	return shadow
}

// end says that the results of a place are complete, and that there are none behind it
// yet.
func (v *Verdict) end(p place) {
	for ; p < places; p++ {
		v.upTo[p] = len(v.Results)
	}
}

// at are the results of a place.
func (v *Verdict) at(p place) []Result {
	if p == enforced {
		return v.Results[:v.upTo[p]]
	}
	return v.Results[v.upTo[p-1]:v.upTo[p]]
}

// Reason tells why a request was allowed or denied.
type Reason uint8

const (
	Limits      Reason = iota // the limits decided, or no rule applies
	Exempt                    // the client is on the exempt list
	Blocked                   // the client is on the block list
	Unavailable               // the store is unavailable, and a rule fails closed
	Overloaded                // the process has shed the request; see [Gate.Protect]
)

func (r Reason) String() string {
	return [...]string{"limits", "exempt", "blocked", "unavailable", "overloaded"}[r]
}

// Result is the result of one limit of a rule.
type Result struct {
	Rule    *rule.Entry
	Quota   *weir.Compiled // the limit that was checked
	Key     string         // identifies the client, as in "user:alice"; valid as long as the verdict
	Cost    int64
	Leave   int64 // units that it leaves for requests with a higher priority; Remaining does not include them
	Look    bool  // it was only checked whether there is room for one unit
	Shadow  bool  // reported, but does not count for the verdict
	Soft    bool  // Shadow, but the client is told
	Penalty bool  // it denies because a penalty of the rule runs, whatever the usage is
	Demand  int   // the demand to which it belongs, if any

	// Override is where the limit comes from, if not from the rule. Do not change it.
	Override *Override

	// Asked is false if the store was unavailable and the rule is open or closed. Then
	// only Allowed of the decision is valid.
	Asked bool

	// Local reports that the store was unavailable, and this process decided by itself.
	Local bool

	weir.Decision

	held      bool          // it is a part of the verdict's hold
	full      bool          // it denies because the key has too many holds
	isPenalty bool          // and not a limit of the rule
	priority  rule.Priority // of the request, if it leaves units for others
}

// Speaker returns the result that the answer describes: the first one that denies, in
// the order of the document; if all allow, the checked one with the fewest units left, which
// may be one of a soft rule that does not allow. It is nil if there is none. A result that denies without having been Asked has no
// numbers.
func (v *Verdict) Speaker() *Result {
	if v.speaker == 0 {
		return nil
	}
	return &v.Results[v.speaker-1]
}

// clear makes the verdict ready for another request. It clears each field in its place; see
// ask.
func (v *Verdict) clear() {
	clear(v.Results)
	clear(v.hits)
	clear(v.ops)
	v.Allowed, v.Reason, v.Delay, v.RetryAfter, v.Degraded = false, 0, 0, 0, nil
	v.Hold, v.HoldExpires, v.Unheld, v.Priority, v.Version = weir.HoldID{}, 0, false, 0, 0
	v.Results, v.hits, v.keys, v.ends, v.ops, v.decisions = v.Results[:0], v.hits[:0], v.keys[:0], v.ends[:0], v.ops[:0], v.decisions[:0]
	v.upTo, v.speaker, v.failed, v.how, v.peeked = [places]int{}, 0, nil, nil, false
	v.penalties, v.places, v.warns, v.counts, v.waitUpTo, v.shares = 0, 0, false, false, 0, false
}

// next adds a result and returns it. To fill it in takes less time than to copy it, because
// it is large.
func (v *Verdict) next() *Result {
	n := len(v.Results)
	if n == cap(v.Results) {
		v.Results = append(v.Results, Result{})
	}
	v.Results = v.Results[:n+1] // which clear has left empty
	return &v.Results[n]
}

// add adds the limits of a rule for every identity that the request has under the rule:
// none if the rule does not apply.
func (v *Verdict) add(in *installed, c rule.Hit, req *rule.Request, visits *tiers) error {
	start := len(v.keys)
	var err error
	if v.keys, v.ends, err = c.Identities(v.keys, v.ends[:0], req); err != nil || len(v.ends) == 0 {
		return err
	}
	cost, err := c.Estimate(req)
	if err != nil {
		return err
	}
	if err := c.ValidateCost(req); err != nil {
		return err
	}
	if req.Permit != nil {
		if err := v.permit(c.ID, req, start); err != nil {
			return err
		}
	}
	for _, end := range v.ends {
		identity := v.keys[start:end]
		if visits != nil && len(c.Tiers) > 0 {
			visits.remember(identity, req.Tier)
		}
		// The key's bytes never change: when the buffer grows, the old one stays for who
		// still points to it.
		v.addOne(in, c.Entry, req, unsafe.String(unsafe.SliceData(identity), len(identity)), cost)
		start = end
	}
	return nil
}

// permit is an error if the request may not be charged under a rule, for one of the
// identities from start on.
func (v *Verdict) permit(id string, req *rule.Request, start int) error {
	for _, end := range v.ends {
		key := v.keys[start:end]
		if !req.Permit(id, unsafe.String(unsafe.SliceData(key), len(key))) {
			return &PermitError{Rule: id, Key: string(key)}
		}
		start = end
	}
	return nil
}

// PermitError reports that a request may not be charged under a rule and a key; see
// [rule.Request.Permit].
type PermitError struct{ Rule, Key string }

func (e *PermitError) Error() string {
	return fmt.Sprintf("engine: the request may not be charged under the rule %s and the key %.200q", e.Rule, e.Key)
}

func (v *Verdict) addOne(in *installed, c *rule.Entry, req *rule.Request, identity string, cost int64) {
	limits, override := in.limits(c, identity, req.Tier)
	if c.Mode.Denies() {
		v.Priority = max(v.Priority, c.PriorityOf(identity, req.Tier))
	}
	for _, limit := range limits {
		if limit.Algorithm() == weir.InFlight && v.how.isPlaced() {
			continue
		}
		r := v.next()
		r.Rule, r.Quota, r.Override, r.Key, r.Cost = c, limit, override, identity, cost
		r.Shadow, r.Soft = !c.Mode.Denies(), c.Mode == rule.Soft
		r.Allowed = true // until somebody was asked
		if limit.Algorithm() == weir.InFlight {
			r.Cost = 1
			v.places++
			v.mayWait(r)
		}
	}
	if len(limits) > 0 {
		v.warns = v.warns || len(c.Warn) > 0
		v.counts = v.counts || c.CountDenied && c.Mode.Denies()
		v.shares = v.shares || c.Shares != rule.Shares{}
		v.addPenalty(c, identity)
	}
}

// opsOf makes the ops of results, from one on.
func (v *Verdict) opsOf(results []Result) []weir.Op {
	v.ops = slices.Grow(v.ops[:0], len(results))[:len(results)]
	for i := range results {
		r, op := &results[i], &v.ops[i]
		r.ask(op, r.Quota, v.how)
	}
	return v.ops
}

// ask makes the op that asks a limit for what the result is about. It writes each field in its
// place, because the processor waits when it copies what it has just written.
func (r *Result) ask(op *weir.Op, limit *weir.Compiled, how *charging) {
	op.Key, op.Limit, op.Cost, op.Leave, op.Look = r.Key, limit, r.Cost, r.Leave, r.Look
	op.Always, op.Final = how.isAlways(), how.isFinal(r)
	op.MaxDelay, op.Receipt = 0, 0
	if r.Look {
		op.Cost, op.Leave, op.Always = 1, 0, false
	}
}

// prioritize finds the priority of a request whose limits are all known, and what it has to
// leave of each.
func (v *Verdict) prioritize(req *rule.Request) {
	v.Priority = cmp.Or(req.Priority, v.Priority, rule.Normal)
	if !v.shares || v.Priority == rule.Critical {
		return
	}
	for i := range v.Results {
		if r := &v.Results[i]; !r.isPenalty {
			if r.Leave = r.Rule.Leave(r.Quota, v.Priority); r.Leave > 0 {
				r.priority = v.Priority
			}
		}
	}
}

// Used returns the units of the limit that are in use. After a denial they may be more, up
// to Leave.
func (r *Result) Used() int64 { return max(0, r.Limit-r.Remaining-r.Leave) }

// record takes over what a store has decided. The error is that of a result that it could not decide, or
// of the hold. That it could not decide a shadow is no news.
func (v *Verdict) record(results []Result) (err error) {
	if len(v.failed) > len(results) {
		err = v.failed[len(results)]
	}
	for i := range results {
		if v.failed != nil && v.failed[i] != nil {
			if !results[i].Shadow {
				err = v.failed[i]
			}
			continue
		}
		results[i].Decision, results[i].Asked = v.decisions[i], true
	}
	return err
}

// conclude finds who speaks and for how long the request is delayed.
func (v *Verdict) conclude() {
	v.mergePenalties()
	v.Allowed, v.Delay, v.RetryAfter, v.speaker = true, 0, 0, 0
	for i := range v.at(enforced) {
		r := &v.Results[i]
		v.Delay = max(v.Delay, r.Delay)
		v.hear(i, r.Asked && !r.Look)
	}
	if !v.Allowed {
		v.Delay = 0
	}
}

// hearSoft lets a soft rule speak for a request that is allowed, if it has less remaining than
// the others.
func (v *Verdict) hearSoft() {
	if !v.Allowed {
		return
	}
	for i := v.upTo[enforced]; i < len(v.Results); i++ {
		if r := &v.Results[i]; r.Soft && r.Asked && !r.Look && (v.speaker == 0 || r.Remaining < v.Results[v.speaker-1].Remaining) {
			v.speaker = i + 1
		}
	}
}

// hear takes a result into account that has a say: it speaks if it denies, or if it may
// speak and has less remaining than those before.
func (v *Verdict) hear(i int, maySpeak bool) {
	r := &v.Results[i]
	v.Allowed = v.Allowed && r.Allowed
	v.RetryAfter = max(v.RetryAfter, r.RetryAfter)
	if (maySpeak || !r.Allowed) && (v.speaker == 0 || r.outranks(&v.Results[v.speaker-1])) {
		v.speaker = i + 1
	}
}

// outranks reports whether a result speaks rather than one that stands before it.
func (r *Result) outranks(before *Result) bool {
	if !r.Allowed || !before.Allowed {
		return before.Allowed
	}
	return r.Remaining < before.Remaining
}
