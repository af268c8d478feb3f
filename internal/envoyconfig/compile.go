package envoyconfig

import (
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// counterName keeps the counters apart from those of rules: no id of a rule has an @.
// It is the same for all nodes, so that a limit that a request brings goes on with the
// counter of the one in the file, if the unit is the same.
const counterName = "@envoy"

// maxID is the longest id under which a node is reported, in bytes.
const maxID = 200

// compileRules makes ready under which name a node is reported, and how it is treated.
func (n *Node) compileRules() {
	id := document.Clip("envoy:"+n.Path, maxID)
	for _, counting := range []bool{false, true} {
		for _, mode := range []rule.Mode{rule.Enforce, rule.Shadow} {
			n.terms[index(counting)][index(mode == rule.Shadow)].Rule = &rule.Entry{
				Rule: &rule.Rule{ID: id, Mode: mode, OnFailure: n.Failure.Policy(), CountDenied: counting},
			}
		}
	}
}

// compileLimits makes ready what a node charges.
func (n *Node) compileLimits() error {
	n.denies = slices.ContainsFunc(n.Limits, func(l Limit) bool { return l.N == 0 })
	if n.Unlimited || n.denies {
		return nil
	}
	for _, counting := range []bool{false, true} {
		limits := make([]*weir.Compiled, len(n.Limits))
		for i, l := range n.Limits {
			c, err := l.compile(counting)
			if err != nil {
				return err
			}
			limits[i] = c
		}
		for watch := range 2 {
			n.terms[index(counting)][watch].Limits = limits
		}
	}
	return nil
}

// compile makes a limit ready. Buckets cannot count what they deny.
func (l *Limit) compile(counting bool) (*weir.Compiled, error) {
	bucket := l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket
	return weir.Limit{
		Name: counterName, Algorithm: l.Algorithm, N: int64(l.N), Burst: l.Burst, Period: l.Period, CountDenied: counting && !bucket,
	}.Compile()
}
