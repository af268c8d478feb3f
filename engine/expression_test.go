package engine_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
)

// A program without the package of expressions says so when a rule has one.
func TestExpressionsWithoutTheirPackage(t *testing.T) {
	e, err := engine.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = e.Load("rules.yaml", []byte("rules: [{id: a, key: ip, limit: 5/1m, match: {when: request.size > 1}}]"))
	if want := `rules.yaml:1:53: error: match: when: this program cannot evaluate expressions; import _ "github.com/weirhq/weir/rule/expression" in it [E027]`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
