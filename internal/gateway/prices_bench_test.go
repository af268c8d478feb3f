package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

// A request to a language model through the gateway whose rule has prices, beside one whose rule counts tokens. Each iteration makes both,
// in turn, so that other work on the machine is felt alike.
func BenchmarkTokenPrices(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model": "gpt-4o-2024-08-06", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29}}`)
	}))
	defer upstream.Close()
	prices := new(rule.Prices)
	if err := prices.Read("prices.json", strings.NewReader(`{"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05}}`)); err != nil {
		b.Fatal(err)
	}
	var servers []*httptest.Server
	for _, rules := range []string{
		"rules: [{id: a, key: ip, limit: 1000000000/day, algorithm: fixed_window, tokens: {}}]",
		"rules: [{id: a, key: ip, limit: 1000000000usd/day, tokens: {price: usd}}]",
	} {
		route, err := ParseRoute(upstream.URL)
		if err != nil {
			b.Fatal(err)
		}
		g, err := New(Options{Limit: pricedLimit(b, rules, prices), Routes: []Route{route}})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		server := httptest.NewServer(g)
		defer server.Close()
		servers = append(servers, server)
	}
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range servers {
			i = (i + n) % 2
			begin := time.Now()
			resp, err := servers[i].Client().Post(servers[i].URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model": "gpt-4o-2024-08-06", "messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 100}`))
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal(resp, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			took[i] = append(took[i], time.Since(begin))
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	b.ReportMetric(median(took[0])/median(took[1]), "prices/tokens")
}

// pricedLimit is a limit with prices, whose requests are in the statistics.
func pricedLimit(b *testing.B, rules string, prices *rule.Prices) *httplimit.Middleware {
	b.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	table := testkit.Must(rule.Compile(set, rule.Options{Prices: prices}))(b)
	recorder := testkit.Must(stats.New(stats.Options{Archive: testkit.Must(archive.NewMemory(archive.Keep{}))(b)}))(b)
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{}), Observers: []engine.Observer{recorder}}))(b)
	b.Cleanup(e.Close)
	e.Install(table, 1)
	return testkit.Must(httplimit.New(e, httplimit.Options{}))(b)
}
