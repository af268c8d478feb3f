package engine

import (
	"slices"
	"time"

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

	// Degraded is the reason why the store was unavailable, or ErrNoRules or ErrNoClients; nil
	// if all was available.
	Degraded error

	// Hold identifies what Reserve has reserved; zero if nothing was. It expires at
	// HoldExpires, by the store's clock.
	Hold        weir.HoldID
	HoldExpires weir.Micros

	// Unheld reports that Reserve has charged an allowed request without a hold, because
	// the store had no place for one. What was charged stays.
	Unheld bool

	others []weir.HoldID // holds besides, of demands
	model  string        // for observers of what is spent

	// Priority is that of the request: its own, else the highest that a rule gives it, else
	// rule.Normal.
	Priority rule.Priority

	// Version is the version of the rules that were used.
	Version int64

	// Results are the results of all limits that were checked: enforced rules first, then
	// shadow and soft rules.
	Results []Result

	timing
	upTo    [groups]int // where each group ends in Results
	speaker int         // of Results, from 1

	// What Check works with.
	hits      []rule.Hit
	keys      []byte
	ends      []int // of the keys of one rule
	ops       []weir.Op
	decisions []weir.Decision
	failed    []error // why the store did not decide each of the first results; nil if it did, or decided none
	charging  charging
	penalties int  // among Results
	places    int  // among Results, which limit how many requests are in flight
	warns     bool // a rule among Results has thresholds
	counts    bool // an enforced rule among Results counts denied requests, when the store denies them

	countsLater bool // a rule among Results counts denied requests unless one before it denies

	waitUpTo time.Duration // for a place; 0 if no rule lets it wait
	shares   bool          // a rule among Results has shares
}

// Reason tells why a request was allowed or denied.
type Reason uint8

const (
	Limits        Reason = iota // the limits decided, or no rule applies
	Exempt                      // the client is on the exempt list
	Blocked                     // the client is on the block list, or blocked in the directory
	Unavailable                 // the store is unavailable, and a rule fails closed
	Overloaded                  // the process has shed the request; see [Gate.Protect]
	UnknownClient               // the directory does not know the client; see [Clients]
)

func (r Reason) String() string {
	return [...]string{"limits", "exempt", "blocked", "unavailable", "overloaded", "unknown_client"}[r]
}

// Crowded reports whether the request was denied because a key, or one client of a shared key, has too many open holds,
// and not because a limit is used up.
func (v *Verdict) Crowded() bool {
	return !v.Allowed && slices.ContainsFunc(v.Results, func(r Result) bool { return r.full && !r.Shadow })
}

// Result is the result of one limit of a rule.
type Result struct {
	Rule     *rule.Entry
	Compiled *weir.Compiled // the limit that was checked
	Key      string         // identifies the client, as in "user:alice"; valid as long as the verdict
	Cost     int64
	Leave    int64 // units that it leaves for requests with a higher priority; Remaining does not include them
	Look     bool  // it was only checked whether there is room for one unit
	Shadow   bool  // reported, but does not count for the verdict
	Soft     bool  // Shadow, but the client is told
	Penalty  bool  // it denies because a penalty of the rule runs, whatever the usage is
	Demand   int   // the demand to which it belongs, if any

	// Override is where the limit comes from, if not from the rule. Do not change it.
	Override *Override

	// Asked is false if the store was unavailable and the rule is open or closed. Then
	// only Allowed of the decision is valid.
	Asked bool

	// Local reports that the store was unavailable, and this process decided by itself.
	Local bool

	weir.Decision

	prompt    int64         // of the cost, what is for the prompt of a language model
	ceiling   int64         // that may be reserved for the request in all
	most      int64         // that the request may cost
	final     bool          // it is charged for good, while others of the request are held
	held      bool          // it is a part of the verdict's hold
	full      bool          // it denies because the key has too many holds
	isPenalty bool          // and not a limit of the rule
	closed    bool          // see Closed
	priority  rule.Priority // of the request, if it leaves units for others
}

// Speaker returns the result that the answer describes: the first one that was checked and denies,
// in the order of the document; if all allow, the checked one with the fewest units left, which
// may be one of a soft rule that does not allow. It is nil if there is none. If what was checked
// allows, one that denies without having been Asked speaks; it has no numbers.
func (v *Verdict) Speaker() *Result {
	if v.speaker == 0 {
		return nil
	}
	return &v.Results[v.speaker-1]
}

// Used returns the units of the limit that are in use; units on lease are not, as far as it is not known that they are
// spent. After a denial they may be more, up to Leave.
func (r *Result) Used() int64 { return max(0, r.Limit-r.Remaining-r.Leave-r.Leased) }

// Level returns the name of the level at which the limit counts; "" if the rule has no levels.
func (r *Result) Level() string { return r.Rule.Level(r.Key) }

// Crowded reports whether it denies because its key, or the client, has too many open holds, and not because the limit is
// used up.
func (r *Result) Crowded() bool { return r.full }

// Closed reports whether the store was unavailable, and the rule fails closed, now or since its local
// fallback has ended.
func (r *Result) Closed() bool { return r.closed }

// Outcome is the result of a request, or of one rule.
type Outcome uint8

const (
	OutcomeAllowed         Outcome = iota
	OutcomeDenied                  // denied by a limit
	OutcomeShadowDenied            // allowed; a shadow rule would have denied it
	OutcomeSoftDenied              // allowed; a soft rule would have denied it, and the client is told
	OutcomeDegradedAllowed         // allowed without the store
	OutcomeDegradedDenied          // denied without the store: a rule fails closed, or counts locally
	OutcomeBlocked                 // the client is on the block list, or blocked in the directory; not an outcome of a rule
	OutcomeExempt                  // the client is on the exempt list; not an outcome of a rule
	OutcomeNoRule                  // allowed, because no rule applied
	OutcomeUnknownClient           // the directory does not know the client; not an outcome of a rule
	Outcomes                       // number of outcomes
)

var outcomeNames = [Outcomes]string{
	OutcomeAllowed: "allowed", OutcomeDenied: "denied", OutcomeShadowDenied: "shadow_denied", OutcomeSoftDenied: "soft_denied",
	OutcomeDegradedAllowed: "degraded_allowed", OutcomeDegradedDenied: "degraded_denied",
	OutcomeBlocked: "blocked", OutcomeUnknownClient: "unknown_client", OutcomeExempt: "exempt", OutcomeNoRule: "no_rule",
}

// String returns the name that metrics and statistics use.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcome returns the outcome of the request. Each request has exactly one.
func (v *Verdict) Outcome() Outcome {
	switch v.Reason {
	case Exempt:
		return OutcomeExempt
	case Blocked:
		return OutcomeBlocked
	case UnknownClient:
		return OutcomeUnknownClient
	case Unavailable:
		return OutcomeDegradedDenied
	}
	switch {
	case !v.Allowed && v.Degraded != nil && !slices.ContainsFunc(v.inGroup(enforced), func(r Result) bool { return !r.Allowed && r.Asked && !r.Local }):
		return OutcomeDegradedDenied
	case !v.Allowed:
		return OutcomeDenied
	case v.Degraded != nil:
		return OutcomeDegradedAllowed
	case len(v.Results) == 0:
		return OutcomeNoRule
	}
	outcome := OutcomeAllowed
	for i := range v.Results {
		if r := &v.Results[i]; r.Shadow && r.Asked && !r.Allowed {
			if r.Soft {
				return OutcomeSoftDenied
			}
			outcome = OutcomeShadowDenied
		}
	}
	return outcome
}

// Held reports whether v.Hold has a part of a result's rule, which said something.
func (v *Verdict) Held(i int, said Outcome) bool {
	return v.Hold != (weir.HoldID{}) && !v.Results[i].final && (said == OutcomeAllowed || said == OutcomeDegradedAllowed && !v.Results[i].Shadow)
}

// Said returns the outcome of a result's rule, for all its limits together, and the
// index of the next rule's first result. The limits of a rule are adjacent, and the
// rule denies if one of them denies.
func (v *Verdict) Said(i int) (said Outcome, next int) {
	r := &v.Results[i]
	pass := r.Allowed
	for next = i + 1; next < len(v.Results) && v.Results[next].Rule == r.Rule; next++ {
		pass = pass && v.Results[next].Allowed
	}
	switch {
	case pass && r.Asked:
		return OutcomeAllowed, next
	case pass:
		return OutcomeDegradedAllowed, next
	case !r.Asked:
		return OutcomeDegradedDenied, next
	case r.Soft:
		return OutcomeSoftDenied, next
	case r.Shadow:
		return OutcomeShadowDenied, next
	}
	return OutcomeDenied, next
}

// group is what becomes of a result.
type group int

const (
	enforced       group = iota // all of them are charged, or none; any denies
	shadow                      // charged if the request is allowed
	countingShadow              // charged whatever becomes of the request
	groups
)

func groupOf(c *rule.Entry) group {
	switch {
	case c.Mode.Denies():
		return enforced
	case c.CountDenied:
		return countingShadow
	}
	return shadow
}

// endGroup says that the results of a group are complete, and that there are none behind it
// yet.
func (v *Verdict) endGroup(g group) {
	for ; g < groups; g++ {
		v.upTo[g] = len(v.Results)
	}
}

// inGroup are the results of a group.
func (v *Verdict) inGroup(g group) []Result {
	if g == enforced {
		return v.Results[:v.upTo[g]]
	}
	return v.Results[v.upTo[g-1]:v.upTo[g]]
}

// clear makes the verdict ready for another request. It clears each field where it is; see
// fillOp.
func (v *Verdict) clear() {
	clear(v.Results)
	clear(v.hits)
	clear(v.ops)
	v.Allowed, v.Reason, v.Delay, v.RetryAfter, v.Degraded = false, 0, 0, 0, nil
	v.Hold, v.HoldExpires, v.Unheld, v.Priority, v.Version = weir.HoldID{}, 0, false, 0, 0
	v.others, v.model = v.others[:0], ""
	v.Results, v.hits, v.keys, v.ends, v.ops, v.decisions = v.Results[:0], v.hits[:0], v.keys[:0], v.ends[:0], v.ops[:0], v.decisions[:0]
	v.upTo, v.speaker, v.failed, v.charging.way = [groups]int{}, 0, nil, plain
	v.penalties, v.places, v.warns, v.counts, v.countsLater, v.waitUpTo, v.shares = 0, 0, false, false, false, 0, false
}

// clearResults forgets the limits that apply.
func (v *Verdict) clearResults() {
	clear(v.Results)
	v.Results, v.upTo = v.Results[:0], [groups]int{}
	v.penalties, v.places, v.warns, v.waitUpTo = 0, 0, false, 0
}

// nextResult adds a result and returns it. To fill it in takes less time than to copy it, because
// it is large.
func (v *Verdict) nextResult() *Result {
	n := len(v.Results)
	if n == cap(v.Results) {
		v.Results = append(v.Results, Result{})
	}
	v.Results = v.Results[:n+1] // which clear has left empty
	return &v.Results[n]
}

// removeResults removes the results for which remove returns true. It is called for each in turn, with those that were kept
// before.
func (v *Verdict) removeResults(remove func(kept []Result, r *Result) bool) {
	kept, ends := 0, v.upTo
	for i := range v.Results {
		r := &v.Results[i]
		if !remove(v.Results[:kept], r) {
			v.Results[kept] = *r
			kept++
			continue
		}
		for g := range ends {
			if i < v.upTo[g] {
				ends[g]--
			}
		}
	}
	clear(v.Results[kept:])
	v.Results, v.upTo = v.Results[:kept], ends
}

// conclude finds who speaks and for how long the request is delayed.
func (v *Verdict) conclude() {
	v.mergePenalties()
	v.Allowed, v.Delay, v.RetryAfter, v.speaker = true, 0, 0, 0
	for i := range v.inGroup(enforced) {
		r := &v.Results[i]
		v.Delay, v.RetryAfter = max(v.Delay, r.Delay), max(v.RetryAfter, r.RetryAfter)
		switch {
		case !r.Allowed && (v.Allowed || r.Asked && !v.Speaker().Asked): // the first that denies speaks
			v.Allowed, v.speaker = false, i+1
		case v.Allowed:
			v.hear(i)
		}
	}
	if !v.Allowed {
		v.Delay = 0
	}
}

// hearSoft lets a soft rule speak for a request that is allowed.
func (v *Verdict) hearSoft() {
	for i := v.upTo[enforced]; v.Allowed && i < len(v.Results); i++ {
		if v.Results[i].Soft {
			v.hear(i)
		}
	}
}

// hear lets a result speak if it has less remaining than those before.
func (v *Verdict) hear(i int) {
	if r := &v.Results[i]; r.Asked && !r.Look && (v.speaker == 0 || r.Remaining < v.Results[v.speaker-1].Remaining) {
		v.speaker = i + 1
	}
}

// Answer is what a verdict says as a whole, for any protocol: the numbers of the limit that
// speaks and, of a denial, why and for how long.
type Answer struct {
	Rule             string // of the limit that speaks, or of the denial
	Level            string // of that limit, if the rule has levels
	Limit, Remaining int64  // 0 if no limit was checked
	Reserved         int64  // of a denied request: units that it lacks and that are only reserved
	ResetAt          weir.Micros
	ResetAfter       time.Duration
	RetryAfter       time.Duration // 0 if allowed; weir.Never if waiting does not help
	Status, Code     int           // of a denial
	Message          string        // of a denial
}

// Answer returns what the verdict says as a whole; see [Verdict.Speaker] and [Describe].
func (v *Verdict) Answer() (a Answer) {
	if s := v.Speaker(); s != nil {
		a = Answer{Rule: s.Rule.ID, Level: s.Level(), Limit: s.Limit, Remaining: s.Remaining, Reserved: s.Reserved, ResetAt: s.ResetAt, ResetAfter: s.ResetAfter}
	}
	if !v.Allowed {
		d := Describe(v)
		a.Rule, a.Level, a.RetryAfter, a.Status, a.Code, a.Message = d.Rule, d.Level, d.RetryAfter, d.HTTPStatus(), d.Code, d.Detail
	}
	return a
}
