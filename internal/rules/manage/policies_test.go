package manage

import (
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Texts are made once for each limit, and forgotten with the rules.
func TestPolicies(t *testing.T) {
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	var p Policies
	for version, source := range map[int64]string{1: "rules: [{id: a, key: ip, limit: 5/1m}]", 2: "rules: [{id: a, key: ip, limit: 6/1h}]"} {
		set, err := rule.Usable("", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		table, err := rule.Compile(set, rule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.Install(table, version)
		limit := table.Rules()[0].Every()[0]
		want := set.Rules[0].Quota.Rates[0].String()
		for range 2 {
			if got := p.Of(&engine.Result{Compiled: limit}, e); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if got := p.Of(&engine.Result{Compiled: otherLimit(t), Override: &engine.Override{}}, e); got != "9/1s" {
			t.Errorf("the text of an override is %s", got)
		}
		kept := 0
		p.now.Load().texts.Range(func(any, any) bool { kept++; return true })
		if kept != 1 {
			t.Errorf("%d texts are kept", kept)
		}
	}
}

func otherLimit(t *testing.T) *weir.Compiled { return testkit.Must(weir.PerSecond(9).Compile())(t) }
