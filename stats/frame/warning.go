package frame

import (
	"cmp"
	"slices"
	"strings"
)

// Warning is that a client has reached a threshold of a rule's limit.
type Warning struct {
	At        int64 // Unix microseconds
	Rule      string
	Key       string
	Policy    string // the limit as a rule defines it, such as "100/1m"
	Threshold int64  // percent
	Used      int64
	Limit     int64
	ResetAt   int64  // Unix microseconds; when the client is fully reset, if it makes no more requests
	Instance  string // the instance that saw it
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
