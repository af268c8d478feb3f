package archive

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/rule"
)

// Denial is the denial of one request by one rule. If several rules denied a request, there
// is a Denial for each of them. Denials are a sample.
type Denial struct {
	At       Instant `json:"at"`
	Key      string  `json:"key"`
	Rule     string  `json:"rule"` // "" if the client is blocked or unknown
	Method   string  `json:"method"`
	Path     string  `json:"path"`    // the pattern of the rule that the path matches; "" if the rule has none
	Address  string  `json:"address"` // of the client; "" if it is not known
	Tier     string  `json:"tier"`
	Cost     int64   `json:"cost"`
	Shadow   bool    `json:"shadow"`         // the rule is a shadow rule: it would have denied the request
	Blocked  bool    `json:"blocked"`        // the client is on the block list
	Unknown  bool    `json:"unknown_client"` // no directory knows the client
	Degraded bool    `json:"degraded"`       // the store was unavailable, and the rule fails closed
	Crowded  bool    `json:"crowded"`        // the key, or the client, had too many open holds; no limit was used up
	Instance string  `json:"instance"`       // the instance that denied the request
}

// Instant is a time in Unix microseconds. In JSON it has seconds, with microseconds behind the
// point.
type Instant int64

// Time returns the instant as a time in UTC.
func (t Instant) Time() time.Time { return time.UnixMicro(int64(t)).UTC() }

// MarshalJSON implements [json.Marshaler].
func (t Instant) MarshalJSON() ([]byte, error) { return json.Marshal(float64(t) / 1e6) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Instant) UnmarshalJSON(text []byte) error {
	var seconds float64
	err := json.Unmarshal(text, &seconds)
	*t = Instant(math.Round(seconds * 1e6))
	return err
}

// Bounds on the denials of a frame.
const (
	MaxDenials    = 128
	MaxDenialsKey = 4 // of one client and rule
)

// compareDenials orders denials, the newest first. Those of the same time have an order,
// too, so that equal frames are equal bytes.
func compareDenials(a, b Denial) int {
	return cmp.Or(
		cmp.Compare(b.At, a.At), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key), strings.Compare(a.Tier, b.Tier),
		strings.Compare(a.Method, b.Method), strings.Compare(a.Path, b.Path), strings.Compare(a.Instance, b.Instance),
		strings.Compare(a.Address, b.Address), cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.flags(), b.flags()),
	)
}

func (d *Denial) flags() byte {
	flags := byte(0)
	for i, set := range []bool{d.Shadow, d.Blocked, d.Degraded, d.Unknown, d.Crowded} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// SortDenials sorts denials into the order of Frame.Denials.
func SortDenials(all []Denial) { slices.SortFunc(all, compareDenials) }

// mergeDenials merges two lists that are in order.
func mergeDenials(a, b []Denial) []Denial {
	if len(b) == 0 {
		return a
	}
	all := make([]Denial, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareDenials(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// trimDenials keeps the newest denials of each client and rule, up to MaxDenials in all. It
// first keeps one of each rule, then a second one of each rule, and so on; within a rule, it
// does the same for clients. So neither a client that is denied all the time nor a rule that
// denies all the time displaces the others.
func trimDenials(all []Denial) []Denial {
	type pair struct{ rule, key string }
	type place struct{ at, turn int } // turn counts the denials of the same client, or of the same rule
	ofClient, places := map[pair]int{}, make([]place, 0, len(all))
	for i := range all {
		p := pair{all[i].Rule, all[i].Key}
		if turn := ofClient[p]; turn < MaxDenialsKey {
			places = append(places, place{i, turn})
		}
		ofClient[p]++
	}
	byTurn := func(a, b place) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.at, b.at)) }
	if len(places) > MaxDenials {
		slices.SortFunc(places, byTurn)
		ofRule := map[string]int{}
		for i := range places {
			id := all[places[i].at].Rule
			places[i].turn = ofRule[id]
			ofRule[id]++
		}
		slices.SortFunc(places, byTurn)
		places = places[:MaxDenials]
		slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	}
	if len(places) == len(all) {
		return all
	}
	kept := make([]Denial, len(places))
	for i, p := range places {
		kept[i] = all[p.at]
	}
	return kept
}

// Warning is that a client has reached a threshold of a rule's limit.
type Warning struct {
	At        Instant `json:"at"`
	Key       string  `json:"key"`
	Rule      string  `json:"rule"`
	Policy    string  `json:"policy"`    // the limit as a rule defines it, such as "100/1m" or "20usd/day"
	Threshold int64   `json:"threshold"` // percent
	Used      int64   `json:"used"`
	Limit     int64   `json:"limit"`
	ResetAt   Instant `json:"reset_at"` // when the client is fully reset, if it makes no more requests
	Instance  string  `json:"instance"` // the instance that saw it

	Display *WarningDisplay `json:"display,omitempty"` // not stored: see Show
}

// WarningDisplay is the units of a [Warning] about money as people read them, such as "$13.37".
type WarningDisplay struct {
	Used  string `json:"used"`
	Limit string `json:"limit"`
}

// Show sets Display, if the limit is one of money.
func (w *Warning) Show() {
	if rate, err := rule.ParseRate(w.Policy); err == nil && rate.Currency != "" {
		w.Display = &WarningDisplay{rule.MoneyText(rate.Currency, w.Used), rule.MoneyText(rate.Currency, w.Limit)}
	}
}

// Warned holds the warnings of a time range.
type Warned struct {
	N    int64     // all of them
	List []Warning // the latest ones, newest first
}

// MaxWarnings bounds the list.
const MaxWarnings = 128

func compareWarnings(a, b Warning) int {
	return cmp.Or(
		cmp.Compare(b.At, a.At), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key), strings.Compare(a.Policy, b.Policy),
		cmp.Compare(b.Threshold, a.Threshold), cmp.Compare(a.Used, b.Used), cmp.Compare(a.Limit, b.Limit),
		cmp.Compare(a.ResetAt, b.ResetAt), strings.Compare(a.Instance, b.Instance),
	)
}

// SortWarnings sorts warnings into the order of Warned.List.
func SortWarnings(all []Warning) { slices.SortFunc(all, compareWarnings) }

// Merge adds other warnings.
func (w *Warned) Merge(other *Warned) {
	w.N += other.N
	if len(other.List) > 0 {
		w.List = slices.Concat(w.List, other.List)
		SortWarnings(w.List)
	}
}

// Trim reduces the list to its bound.
func (w *Warned) Trim() {
	if len(w.List) > MaxWarnings {
		w.List = slices.Clone(w.List[:MaxWarnings])
	}
}
