package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/estimate"
	"github.com/weirhq/weir/rule"
)

// taught is what an engine has learned, with a clock.
type taught struct {
	answers
	now weir.Micros
}

func (a *taught) teach(model string, client uint32, tokens int64) {
	a.learn(a.now, answersOf{"a", model}, estimate.Source{Owner: client, Client: client}, tokens)
	a.now = a.now.Add(time.Second)
}

func (a *taught) median(model string) int64 {
	return a.expected(&rule.Entry{Rule: &rule.Rule{ID: "a", Tokens: &rule.Tokens{Reserve: rule.Reserve{Quantile: 50}}}}, model)
}

// What is learned is bounded, whatever models clients name. A model with answers of several clients stays, although others
// have more of them.
func TestLearnedBound(t *testing.T) {
	var a taught
	for n := range uint32(30) {
		a.teach("new", n%8, 1000) // too few to be known, but more than those that are invented have
	}
	for n := range uint32(100) {
		a.teach("m", n%8, 1000)
	}
	for n := range uint32(10 * maxLearned) {
		for client := range uint32(3) {
			a.teach(fmt.Sprint("model", n), client, 1)
		}
	}
	for n := range uint32(40) {
		a.teach("new", n%8, 1000)
	}
	if len(a.lengths) > maxLearned || a.median("m") < 1000 || a.median("new") < 1000 {
		t.Errorf("%d models, %d and %d tokens are expected", len(a.lengths), a.median("m"), a.median("new"))
	}
}

// If everything that is known is in use, a new model finds no room, until one has had no answer for a day.
func TestLearnedFull(t *testing.T) {
	var a taught
	all := func(models int, from int) {
		for n := range uint32(70) {
			for m := range models {
				a.teach(fmt.Sprint("model", from+m), n%8, 1000)
				a.now = a.now.Add(-time.Second)
			}
			a.now = a.now.Add(time.Second)
		}
	}
	all(maxLearned, 0)
	all(1, maxLearned)
	if a.median("model0") < 1000 || a.median(fmt.Sprint("model", maxLearned)) != 0 || len(a.lengths) != maxLearned {
		t.Error("a model that was known made room for a new one")
	}
	a.now = a.now.Add(25 * time.Hour)
	all(maxLearned-1, 1)
	all(1, maxLearned)
	if a.median("model0") != 0 || a.median("model1") < 1000 || a.median(fmt.Sprint("model", maxLearned)) < 1000 {
		t.Error("a model that is not in use made no room")
	}
}
