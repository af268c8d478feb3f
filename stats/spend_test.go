package stats

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

const spendRules = `
levels: [org, user]
rules:
  - {id: each, key: user, limits: [200usd/month, 150usd/week], on_expiry: release}
  - {id: all, key: global, limit: 1000usd/month, mode: shadow, on_expiry: release}
  - {id: team, key: levels, levels: {org: 500usd/month, user: 100usd/month}, match: {path: /team}, on_expiry: release}
  - {id: calls, key: user, limit: 1000000/month}
`

// Whatever happens to requests, the report by client, by model and by day has the same sum, which is the usage of the
// limits of a month: with refunds, cancelled and late settlements, repeated ones, and work that is done already.
func TestSpendingIsUsage(t *testing.T) {
	server := testredis.Start(t)
	stores := map[string]func(keep archive.Keep) archive.Store{
		"memory": func(keep archive.Keep) archive.Store { return testkit.Must(archive.NewMemory(keep))(t) },
		"redis": func(keep archive.Keep) archive.Store {
			return testkit.Must(archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: 10 * time.Second, Keep: keep}))(t)
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { testSpendingIsUsage(t, open(archive.Keep{})) })
	}
}

func testSpendingIsUsage(t *testing.T, a archive.Store) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	clock := newClock(time.Date(2026, 3, 2, 23, 0, 0, 0, time.UTC)) // a Monday
	micros := func() weir.Micros { return weir.Micros(clock.micros.Load()) }
	r := newRecorder(t, Options{Archive: a, Clock: clock.now, Logger: slog.New(slog.DiscardHandler)})
	store := memory.New(memory.Options{Clock: micros})
	var engines []*engine.Engine // which share the store, so that one settles what another has reserved
	for range 2 {
		e := testkit.Must(engine.New(engine.Options{Store: store, Observers: []engine.Observer{r}, Clock: micros}))(t)
		t.Cleanup(e.Close)
		e.Install(tableOf(t, spendRules), 1)
		engines = append(engines, e)
	}
	models := []string{"gpt-4o", "us.anthropic.claude:v1,0", "模型", ""}
	var open []weir.HoldID
	for range 600 {
		e := engines[random.IntN(2)]
		req := rule.Request{
			User: fmt.Sprintf("u:%d", random.IntN(5)), Path: []string{"/", "/team"}[random.IntN(2)],
			Attributes: map[string]string{"org": fmt.Sprintf("o,%d", random.IntN(2)), "model": models[random.IntN(len(models))]},
			Costs:      map[string]int64{"usd": 1 + random.Int64N(2_000_000)},
		}
		var v engine.Verdict
		var err error
		switch random.IntN(8) {
		case 0:
			err = e.Check(t.Context(), &req, &v)
		case 1:
			if err = e.Check(t.Context(), &req, &v); err == nil {
				err = e.Refund(t.Context(), &v)
			}
		case 2:
			err = e.Charge(t.Context(), &req, &v)
		case 3, 4:
			if err = e.Reserve(t.Context(), &req, 20*time.Hour, &v); v.Hold != (weir.HoldID{}) {
				open = append(open, v.Hold)
			}
		case 5, 6:
			if len(open) > 0 {
				i := random.IntN(len(open)) // some are settled twice
				_, err = e.Settle(t.Context(), open[i], engine.ByUnit{"usd": random.Int64N(4_000_000)})
			}
		case 7:
			if len(open) > 0 {
				_, err = e.Cancel(t.Context(), open[random.IntN(len(open))])
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(8) == 0 {
			flush(t, r)
			clock.advance(time.Duration(random.IntN(5000)) * time.Second)
		}
	}
	for _, id := range open {
		testkit.Must(engines[0].Cancel(t.Context(), id))(t)
	}
	clock.advance(21 * time.Hour) // after which no hold is open
	flush(t, r)

	usage := map[string]int64{}
	for _, key := range []string{"user:u:0", "user:u:1", "user:u:2", "user:u:3", "user:u:4", "org:o,0", "org:o,1", "global"} {
		var v engine.Verdict
		if _, err := engines[1].Standing(t.Context(), "", key, "", &v); err != nil {
			t.Fatal(err)
		}
		for i := range v.Results {
			if one := &v.Results[i]; one.Compiled.Limit().Period > 8*24*time.Hour || one.Compiled.Limit().Period == 0 {
				usage[one.Rule.ID+" "+key] += one.Used()
			}
		}
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	ask := func(q SpendQuery) map[string]int64 {
		q.From, q.To = from, clock.now().Add(time.Hour)
		sums := map[string]int64{}
		for _, line := range testkit.Must(r.Spending(t.Context(), q))(t).Lines {
			sums[line.Rule+" "+line.Level] += line.Units
			if q.ByClient && !q.ByModel {
				sums[line.Rule+" "+line.Client] += line.Units
			}
			if q.ByModel && line.Model != "" && line.Requests > 0 {
				sums["model "+line.Model] = 1
			}
		}
		return sums
	}
	byClient, byModel := ask(SpendQuery{ByClient: true}), ask(SpendQuery{ByModel: true})
	byDay, byAll, none := ask(SpendQuery{ByDay: true}), ask(SpendQuery{ByDay: true, ByModel: true, ByClient: true, N: 3}), ask(SpendQuery{})
	for key, units := range usage {
		if byClient[key] != units && key[:5] != "calls" {
			t.Errorf("%s has used %d, and the report says %d", key, units, byClient[key])
		}
	}
	for _, sum := range []string{"each ", "all ", "team org", "team user"} {
		if want := byClient[sum]; want == 0 || byModel[sum] != want || byDay[sum] != want || byAll[sum] != want || none[sum] != want {
			t.Errorf("%s: by client %d, model %d, day %d, all %d, none %d", sum, want, byModel[sum], byDay[sum], byAll[sum], none[sum])
		}
	}
	if usage["all global"] == 0 || usage["team org:o,0"] == 0 || byClient["calls "] != 0 || byModel["model 模型"] == 0 || byModel["model us.anthropic.claude:v1,0"] == 0 {
		t.Errorf("usage %v, by client %v, by model %v", usage, byClient, byModel)
	}
}

// Those beyond the bound are counted as others of their rule, and no sum changes.
func TestManySpenders(t *testing.T) {
	d := newDesk(t, "rules: [{id: a, key: user, limit: 1000usd/month}]")
	const clients, days = 3 * archive.MaxSpenders, 2
	want := int64(0)
	for range days {
		for i := range int64(clients) {
			d.ObserveSpend(engine.Spend{Rule: "a", Key: fmt.Sprint("user:", i), Model: "m", Currency: "usd", Units: 10 + i, Tokens: rule.Usage{Input: 1, Output: 2}})
			if want += 10 + i; i%701 == 0 {
				d.pass(1)
			}
		}
		d.pass(24 * 3600)
	}
	flush(t, d.Recorder)
	s := testkit.Must(d.Spending(t.Context(), SpendQuery{From: noon.Add(-time.Hour), To: d.clock.now(), ByClient: true, N: MaxSpending}))(t)
	sum, requests, others := int64(0), int64(0), int64(0)
	for _, line := range s.Lines {
		sum, requests = sum+line.Units, requests+line.Requests
		if line.Client == archive.Other {
			others = line.Units
		}
	}
	if sum != want || requests != clients*days || others == 0 || len(s.Lines) > days*archive.MaxSpenders+1 {
		t.Errorf("%d of %d, %d requests, others %d, %d lines", sum, want, requests, others, len(s.Lines))
	}
	if s.Kept != 90*24*time.Hour || !s.From.Equal(noon.Truncate(24*time.Hour)) {
		t.Errorf("from %v, kept %v", s.From, s.Kept)
	}
}

// Whatever happens to the connection to Redis, by client and by model the same is settled, and the limits of a year have it: what
// was settled although the answer was lost counts once, and what was reserved without an answer expires.
func TestSpendingThroughFaults(t *testing.T) {
	server := testredis.Start(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	proxy := testredis.NewProxy(t, server)
	a := testkit.Must(archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: 10 * time.Second}))(t)
	r := newRecorder(t, Options{Archive: a, Logger: slog.New(slog.DiscardHandler)})
	engineAt := func(addr string) *engine.Engine {
		store := testkit.Must(redis.New(redisClient(t, addr), redis.Options{Timeout: time.Second}))(t)
		t.Cleanup(store.Close)
		e := testkit.Must(engine.New(engine.Options{Store: store, Observers: []engine.Observer{r}}))(t)
		t.Cleanup(e.Close)
		e.Install(tableOf(t, `rules: [{id: each, key: user, limit: 2000usd/year, on_failure: closed, on_expiry: release}]`), 1)
		return e
	}
	e, direct := engineAt(proxy.Addr), engineAt(server.Addr)
	users := []string{"ann", "bob", "eve"}
	faults, pending := 0, 0
	fail := func() {
		switch random.IntN(8) {
		case 0:
			proxy.ResetMidReply(0) // it is done, and nobody knows
			faults++
		case 1:
			proxy.Cut()
			faults++
		}
	}
	for i := range 300 {
		req := rule.Request{User: users[random.IntN(3)], Attributes: map[string]string{"model": []string{"m", "n"}[random.IntN(2)]}, Costs: map[string]int64{"usd": 1_000_000}}
		var v engine.Verdict
		fail()
		for n := 0; n == 0 || v.Hold == (weir.HoldID{}); n++ { // until the engine asks the store again
			if n > 0 {
				time.Sleep(5 * time.Millisecond)
			}
			_ = e.Reserve(t.Context(), &req, 2*time.Second, &v)
			proxy.Heal()
		}
		fail()
		settled, err := e.Settle(t.Context(), v.Hold, engine.ByUnit{"usd": 1 + random.Int64N(2_000_000)})
		if err == nil && settled.State == weir.HoldPending {
			pending++
		}
		if proxy.Heal(); i%10 == 0 {
			flush(t, r)
		}
	}
	var usage, byClient, byModel int64
	ask := func(q SpendQuery) (sum int64) {
		q.From, q.To = time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
		for _, line := range testkit.Must(r.Spending(t.Context(), q))(t).Lines {
			sum += line.Units
		}
		return sum
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // until no hold is open
		usage = 0
		for _, user := range users {
			var v engine.Verdict
			if _, err := direct.Standing(t.Context(), "each", "user:"+user, "", &v); err != nil {
				t.Fatal(err)
			}
			usage += v.Results[0].Used()
		}
		flush(t, r)
		byClient, byModel = ask(SpendQuery{ByClient: true}), ask(SpendQuery{ByModel: true})
		if byClient == usage && byModel == usage || time.Now().After(deadline) {
			break
		}
	}
	t.Logf("%d faults, %d settlements were pending, %d micro-dollars", faults, pending, usage)
	if usage != byClient || usage != byModel || usage == 0 || pending == 0 {
		t.Errorf("usage %d, by client %d, by model %d; %d pending", usage, byClient, byModel, pending)
	}
}
