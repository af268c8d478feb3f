package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
	"github.com/weirhq/weir/store/memory"
)

func Example() {
	store := memory.New(memory.Options{})
	m, err := metrics.New(metrics.Options{Keys: store.Stats})
	if err != nil {
		panic(err)
	}
	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{m}})
	if err != nil {
		panic(err)
	}
	set, problems := rule.Parse("rules.yaml", []byte("rules: [{id: api, key: user, algorithm: sliding_log, limit: 2/1h}]"))
	if err := problems.Err(); err != nil {
		panic(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		panic(err)
	}
	e.Install(table, 1)

	var v engine.Verdict
	for range 5 {
		if err := e.Check(context.Background(), &rule.Request{User: "alice"}, &v); err != nil {
			panic(err)
		}
	}
	scrape := httptest.NewRecorder()
	m.Handler().ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "weir_decisions_total") || strings.HasPrefix(line, "weir_keys ") {
			fmt.Print(line)
		}
	}
	// Output:
	// weir_decisions_total{outcome="allowed",rule="api"} 2
	// weir_decisions_total{outcome="denied",rule="api"} 3
	// weir_keys 1
}
