package main

import (
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

// The report is a table for people, without columns that have nothing, and one for spreadsheets.
func TestSpend(t *testing.T) {
	r := testkit.Must(stats.New(stats.Options{Archive: testkit.Must(archive.NewMemory(archive.Keep{}))(t)}))(t)
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{}), Observers: []engine.Observer{r}}))(t)
	set, _ := rule.Parse("", []byte("rules: [{id: spend, key: user, limit: 2000usd/year}, {id: spend-in-yen, match: {attributes: {paid: yen}}, key: user, limit: 9000jpy/day}]"))
	e.Install(testkit.Must(rule.Compile(set, rule.Options{}))(t), 1)
	rules := testkit.Must(filerepo.Open(file(t, "rules.yaml", "rules: []"), filerepo.Options{}))(t)
	apply := func(repo.Version) error { return nil }
	handler := testkit.Must(httpapi.New(httpapi.Options{Stats: r, Service: manage.Service{Engine: e, Rules: rules, Apply: apply}}))(t)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	on := func(args ...string) outcome { return command(t, "", append(args, "--server", server.URL)...) }

	on("spend").want(t, 0, `^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \(UTC\): nothing was charged$`, "")
	for user, micros := range map[string]int64{"ann": 1_234_500_000, "bob": 1_500_000} {
		var v engine.Verdict
		if err := e.Check(t.Context(), &rule.Request{User: user, Costs: map[string]int64{"usd": micros}, Attributes: map[string]string{"model": "gpt-4o"}}, &v); err != nil || !v.Allowed {
			t.Fatal(err)
		}
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	on("spend").want(t, 0, `\(UTC\)\n\nrule   requests  spent      input tokens  output tokens\nspend  2         \$1,236.00  0             0\n$`, "")
	on("spend", "--by", "client,model").want(t, 0, `\nspend  user:ann  gpt-4o  1         \$1,234.50  0             0\nspend  user:bob  gpt-4o  1         \$1.50 `, "")
	on("spend", "--by", "client", "--csv").want(t, 0, `^rule,level,client,model,day,requests,refunds,currency,micros,amount,input_tokens,output_tokens\nspend,,user:ann,,,1,0,usd,1234500000,1234.50,0,0\n`, "")
	on("spend", "--output", "json", "--rule", "spend").want(t, 0, `"micros": 1236000000`, "")
	var v engine.Verdict
	if err := e.Check(t.Context(), &rule.Request{User: "yuki", Costs: map[string]int64{"jpy": 1_500_500_000}, Attributes: map[string]string{"paid": "yen"}}, &v); err != nil || !v.Allowed {
		t.Fatal(err)
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	on("spend", "--rule", "spend-in-yen").want(t, 0, `\nspend-in-yen  1         1,500\.50 JPY `, "")
	on("spend", "--csv", "--rule", "spend-in-yen").want(t, 0, `\nspend-in-yen,,,,,1,0,jpy,1500500000,1500.50,0,0\n`, "")
	on("spend", "--by", "tier").want(t, 1, "", "by: .*write client, model and day")
	on("check", "--user", "bob").want(t, 0, `spend  user:bob  fixed_window 2000usd/year  \$1,998\.\d+ of \$2,000\.00`, "")
}
