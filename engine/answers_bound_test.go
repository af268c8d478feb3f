package engine

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/rule"
)

// What is learned is bounded, whatever models clients name, and a model with answers stays.
func TestLearnedBound(t *testing.T) {
	var a answers
	c := &rule.Entry{Rule: &rule.Rule{ID: "a", Tokens: &rule.Tokens{Reserve: rule.Reserve{Quantile: 50}}}}
	for n := range 10 * maxLearned {
		a.learn(c, fmt.Sprint("model", n), 1, 1)
		a.learn(c, "m", uint32(n%8), 1000)
	}
	if len(a.lengths) > maxLearned || a.expected(c, "m") < 1000 {
		t.Errorf("%d models, %d tokens are expected", len(a.lengths), a.expected(c, "m"))
	}
}
