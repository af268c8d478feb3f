package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	counterredis "github.com/weirhq/weir/counter/redis"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
	"github.com/weirhq/weir/queue/redis"
)

// testQueues are the queues of these tests.
var testQueues = map[string]queue.Settings{
	"mail": {N: 10, Period: time.Second, Capacity: 3, MaxTries: 2, MaxPayload: 100, Remember: time.Hour},
	"slow": {N: 1, Period: 90 * time.Second, Capacity: 1, MaxDead: 3},
}

// kept is an API with counters and queues, on a clock that stands still until it is moved.
type kept struct {
	*stand
	now   *atomic.Int64
	redis *testredis.Server // nil in memory
}

func (k *kept) clock() weir.Micros { return weir.Micros(k.now.Load()) }

func (k *kept) pass(d time.Duration) { k.now.Add(d.Microseconds()) }

func (k *kept) at(now time.Time) { k.now.Store(now.UnixMicro()) }

// keptInMemory opens one in memory.
func keptInMemory(t testing.TB, o Options) *kept {
	t.Helper()
	k := &kept{now: new(atomic.Int64)}
	k.at(begin)
	queues, err := memory.New(testQueues, memory.Options{Clock: k.clock})
	if err != nil {
		t.Fatal(err)
	}
	return k.open(t, o, countermemory.New(countermemory.Options{Clock: k.clock}), queues)
}

// keptInRedis opens one in a Redis of its own.
func keptInRedis(t testing.TB, o Options) *kept {
	t.Helper()
	k := &kept{now: new(atomic.Int64), redis: testredis.Start(t)}
	k.at(begin)
	client := clientOf(t, k.redis)
	const patient = 20 * time.Second // the race detector and a busy machine are slow
	counters, err := counterredis.New(client, counterredis.Options{Clock: k.clock, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	queues, err := redis.New(client, testQueues, redis.Options{Clock: k.clock, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	return k.open(t, o, counters, queues)
}

func clientOf(t testing.TB, server *testredis.Server) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (k *kept) open(t testing.TB, o Options, counters counter.Store, queues queue.Store) *kept {
	t.Helper()
	if o.Counters == nil {
		o.Counters = counters
	}
	if o.Queues == nil {
		o.Queues, o.QueueNames = queues, []string{"mail", "slow"}
	}
	o.Clock = func() time.Time { return time.UnixMicro(k.now.Load()) }
	k.stand = newStand(t, o)
	return k
}

// eachStore runs a test in memory, and in Redis: the two must answer the same.
func eachStore(t *testing.T, test func(*testing.T, *kept)) {
	t.Run("memory", func(t *testing.T) { test(t, keptInMemory(t, Options{})) })
	t.Run("redis", func(t *testing.T) { test(t, keptInRedis(t, Options{})) })
}

// says fails unless a call answers with just this body.
func (k *kept) says(t *testing.T, what, body, want string) {
	t.Helper()
	status := 200
	if strings.HasSuffix(what, "/push") {
		status = 202
	}
	if got := strings.TrimSpace(string(k.call(what, body).want(t, status, nil).body)); got != want {
		t.Fatalf("%s %s\nanswers %s,\nwant    %s", what, body, got, want)
	}
}

func TestCounters(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		k.says(t, "POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"a","window":"day","zone":"Asia/Shanghai","by":2.5},{"name":"b","group":"g","by":-3},{"name":"a","by":null}]}`,
			`{"counters":[{"name":"a","value":1},{"name":"a","window":"day","zone":"Asia/Shanghai","value":2.5},{"name":"b","group":"g","value":-3},{"name":"a","value":2}]}`)
		k.says(t, "GET /v1/counters?name=a&name=none&name=b", "",
			`{"counters":[{"name":"a","value":2},{"name":"none","value":0},{"name":"b","value":0}]}`)
		k.says(t, "GET /v1/counters?name=b&group=g&window=ever&zone=", "", `{"counters":[{"name":"b","group":"g","value":-3}]}`)
		for range 10 {
			k.call("POST /v1/counters/add", `{"add":[{"name":"tenths","by":0.1}]}`).want(t, 200, nil)
		}
		k.says(t, "GET /v1/counters?name=tenths", "", `{"counters":[{"name":"tenths","value":1}]}`)

		k.pass(24 * time.Hour)
		k.says(t, "GET /v1/counters/history?name=a&window=day&zone=Asia/Shanghai&n=2", "",
			`{"counters":[{"name":"a","window":"day","zone":"Asia/Shanghai","points":[{"start":"2026-01-01T00:00:00+08:00","value":2.5},{"start":"2026-01-02T00:00:00+08:00","value":0}]}]}`)
		k.says(t, "GET /v1/counters/history?name=a", "", `{"counters":[{"name":"a","points":[{"value":2}]}]}`)
		var history CounterHistoryAnswer
		k.call("GET /v1/counters/history?name=a&name=b&window=minute", "").want(t, 200, &history)
		if len(history.Counters) != 2 || len(history.Counters[1].Points) != usualList {
			t.Errorf("%+v", history)
		}

		k.says(t, "POST /v1/counters/reset", `{"reset":[{"name":"a"},{"name":"b","group":"g"},{"name":"none","window":"hour","zone":"UTC"}]}`,
			`{"counters":[{"name":"a","value":2},{"name":"b","group":"g","value":-3},{"name":"none","window":"hour","zone":"UTC","value":0}]}`)
		k.says(t, "GET /v1/counters?name=a", "", `{"counters":[{"name":"a","value":0}]}`)

		k.says(t, "POST /v1/counters/set", `{"set":[{"name":"a","value":7.5},{"name":"a","window":"month","zone":"Asia/Shanghai","value":-1},{"name":"a","value":8}]}`,
			`{"counters":[{"name":"a","value":7.5,"previous":0},{"name":"a","window":"month","zone":"Asia/Shanghai","value":-1,"previous":0},{"name":"a","value":8,"previous":7.5}]}`)
		k.says(t, "POST /v1/counters/set", `{"set":[{"name":"a","value":8}]}`, `{"counters":[{"name":"a","value":8,"previous":8}]}`)
		k.says(t, "GET /v1/counters/history?name=a&window=month&zone=Asia/Shanghai&n=2", "",
			`{"counters":[{"name":"a","window":"month","zone":"Asia/Shanghai","points":[{"start":"2025-12-01T00:00:00+08:00","value":0},{"start":"2026-01-01T00:00:00+08:00","value":-1}]}]}`)

		k.says(t, "POST /v1/counters/add", `{"add":[{"name":"a","distinct":true,"members":["x","y","x"]},{"name":"a","window":"day","distinct":true,"members":["x"]},{"name":"a"}]}`,
			`{"counters":[{"name":"a","distinct":true,"value":2},{"name":"a","window":"day","distinct":true,"value":1},{"name":"a","value":9}]}`)
		k.says(t, "GET /v1/counters?name=a&name=b&distinct=true", "", `{"counters":[{"name":"a","distinct":true,"value":2},{"name":"b","distinct":true,"value":0}]}`)
		k.says(t, "GET /v1/counters/history?name=a&window=day&n=1&distinct=true", "",
			`{"counters":[{"name":"a","window":"day","distinct":true,"points":[{"start":"2026-01-02T00:00:00Z","value":1}]}]}`)
		k.says(t, "POST /v1/counters/reset", `{"reset":[{"name":"a","distinct":true}]}`, `{"counters":[{"name":"a","distinct":true,"value":2}]}`)
		k.says(t, "GET /v1/counters?name=a&distinct=false", "", `{"counters":[{"name":"a","value":9}]}`)

		// Names are whatever UTF-8 there is.
		const odd = `a\"\\ \u0000&=+{}:%25 \u65e5`
		k.call("POST /v1/counters/add", `{"add":[{"name":"`+odd+`","group":"`+odd+`"}]}`).want(t, 200, nil)
		var a CountersAnswer
		k.call("GET /v1/counters?name=a%22%5c%20%00%26%3D%2B%7B%7D%3A%2525%20%E6%97%A5&group=a%22%5c%20%00%26%3D%2B%7B%7D%3A%2525%20%E6%97%A5", "").want(t, 200, &a)
		if a.Counters[0].Value != counter.One || a.Counters[0].Name != "a\"\\ \x00&=+{}:%25 日" {
			t.Errorf("%+v", a)
		}
	})
}

// What cannot be done as a whole is not done at all.
func TestCountersAreAllOrNone(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		k.call("POST /v1/counters/add", `{"add":[{"name":"full","by":8999999999999.5}]}`).want(t, 200, nil)
		k.call("POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"full"}]}`).wantProblem(t, fault.OutOfRange, "nothing was counted")
		k.call("POST /v1/counters/add", `{"add":[{"name":"a"},{"name":""}]}`).wantProblem(t, fault.BadField)
		k.says(t, "GET /v1/counters?name=a&name=full", "", `{"counters":[{"name":"a","value":0},{"name":"full","value":8999999999999.5}]}`)
		k.call("POST /v1/boards/score", `{"board":{"name":"b"},"score":[{"member":"m"},{"member":"m","by":9007199254.740991}]}`).wantProblem(t, fault.OutOfRange)
		k.says(t, "GET /v1/boards/top?board=b", "", `{"places":[],"members":0,"dropped":0}`)
	})
}

// New names are refused by counters that are full, with a line in the log, and others go on.
func TestCountersAreFull(t *testing.T) {
	k := &kept{now: new(atomic.Int64)}
	k.at(begin)
	k.open(t, Options{}, countermemory.New(countermemory.Options{Clock: k.clock, MaxEntries: 2}), nil)
	k.call("POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"b"}]}`).want(t, 200, nil)
	for range 20 {
		k.call("POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"c"}]}`).wantProblem(t, fault.CountersFull, "raise --counter-capacity")
		k.call("POST /v1/hot/hit", `{"list":{"name":"l","window_s":60,"threshold":2},"items":["i"]}`).wantProblem(t, fault.CountersFull)
	}
	k.says(t, "POST /v1/counters/add", `{"add":[{"name":"a"}]}`, `{"counters":[{"name":"a","value":2}]}`)
	if lines := strings.Count(k.log.String(), "counters full; new names are rejected"); lines != 1 {
		t.Errorf("within a second, the log has %d lines", lines)
	}
}

func TestIDs(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		last := begin.UnixMicro() - 1
		for _, sequence := range []string{"orders", "orders", "orders"} {
			var a IDAnswer
			k.call("POST /v1/ids", `{"sequence":"`+sequence+`"}`).want(t, 200, &a)
			if a.ID <= last || a.ID > begin.UnixMicro()+10 {
				t.Errorf("after %d comes %d", last, a.ID)
			}
			last = a.ID
		}
		for _, body := range []string{`{}`, `{"sequence":""}`, `{"sequence":"` + strings.Repeat("x", counter.MaxNameLen+1) + `"}`} {
			if p := k.call("POST /v1/ids", body).wantProblem(t, fault.BadField); p.Field != "sequence" {
				t.Errorf("%+v", p)
			}
		}
	})
}

func TestCounterProblems(t *testing.T) {
	k := keptInMemory(t, Options{})
	long := strings.Repeat("x", counter.MaxNameLen+1)
	many := strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, counter.MaxBatch+1), ",")
	for _, c := range []struct{ what, body, field, words string }{
		{"POST /v1/counters/add", `{}`, "add", "required"},
		{"POST /v1/counters/add", `{"add":[]}`, "add", "required"},
		{"POST /v1/counters/add", `{"add":{}}`, "add", "send a list"},
		{"POST /v1/counters/add", `{"add":[` + many + `]}`, "add", "256"},
		{"POST /v1/counters/add", `{"ad":[]}`, "ad", "did you mean add?"},
		{"POST /v1/counters/add", `{"add":[{"nam":"a"}]}`, "nam", "did you mean name?"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","bye":1}]}`, "bye", "did you mean by?"},
		{"POST /v1/counters/add", `{"add":[{"name":"a"},null]}`, "add[1].name", "it is empty"},
		{"POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"` + long + `"}]}`, "add[1].name", "256"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","group":"` + long + `"}]}`, "add[0].group", "256"},
		{"POST /v1/counters/add", `{"add":[{"name":1}]}`, "add.name", "send a string"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","window":"week"}]}`, "window", "ever, second, minute, hour, day, month or year"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","window":3}]}`, "add.window", "send a string"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","zone":"Mars/North"}]}`, "add[0].zone", "Asia/Shanghai"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","by":1e33}]}`, "by", "1e33"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","by":0.0000001}]}`, "by", "0.0000001"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","by":"1"}]}`, "by", "number"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","by":9000000000000.1}]}`, "by", "is too large"},
		{"POST /v1/counters/add?name=a", `{"add":[{"name":"a"}]}`, "name", "no parameter"},
		{"POST /v1/counters/reset", `{"reset":[]}`, "reset", "required"},
		{"POST /v1/counters/reset", `{"reset":[{"name":""}]}`, "reset[0].name", "it is empty"},
		{"POST /v1/counters/reset", `{"reset":[` + many + `]}`, "reset", "256"},
		{"POST /v1/counters/reset", `{"reset":[{"name":"a","by":1}]}`, "by", "no field"},

		{"GET /v1/counters", "", "name", "required"},
		{"GET /v1/counters?name=", "", "name", "it is empty"},
		{"GET /v1/counters?name=%ff", "", "name", "UTF-8"},
		{"GET /v1/counters?name=a&group=%ff", "", "group", "UTF-8"},
		{"GET /v1/counters?name=a&group=g&group=h", "", "group", "send it once"},
		{"GET /v1/counters?name=a&window=", "", "window", "not a window"},
		{"GET /v1/counters?name=a&window=Day", "", "window", "not a window"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","distinct":true}]}`, "add[0].members", "required"},
		{"POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"a","members":["x"]}]}`, "add[1].members", "make the counter distinct"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","distinct":true,"by":2,"members":["x"]}]}`, "add[0].by", "once"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","distinct":true,"members":["x",""]}]}`, "add[0].members[1]", "empty"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","distinct":true,"members":["` + strings.Repeat("x", 257) + `"]}]}`, "add[0].members[0]", "256"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","distinct":true,"members":["x"` + strings.Repeat(`,"x"`, 256) + `]}]}`, "add[0].members", "256"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","distinct":true,"members":["x"` + strings.Repeat(`,"x"`, 200) + `]},{"name":"b","distinct":true,"members":["x"` + strings.Repeat(`,"x"`, 200) + `]}]}`, "members", "256"},
		{"POST /v1/counters/set", `{"set":[{"name":"a","distinct":true,"value":1}]}`, "set[0].distinct", "reset it"},
		{"POST /v1/counters/set", `{"set":[{"name":"a","value":1e33}]}`, "value", "1e33"},
		{"POST /v1/counters/set", `{"set":[{"name":"a","value":"1"}]}`, "value", "not an amount"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":[1,null]}]}`, "values", "null"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":["1"]}]}`, "values", "not a value"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":[1e300]}]}`, "values", "9e12"},
		{"POST /v1/distributions/observe", `{"observe":[]}`, "observe", "required"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":[1]},{"name":"a"}]}`, "observe[1].values", "required"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":[1,-1]}]}`, "observe[0].values", "from 0 to"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"","values":[1]}]}`, "observe[0].name", "empty"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":[1` + strings.Repeat(",1", 1000) + `]}]}`, "observe[0].values", "1000"},
		{"POST /v1/distributions/observe", `{"observe":[{"name":"a","values":[1` + strings.Repeat(",1", 600) + `]},{"name":"b","values":[1` + strings.Repeat(",1", 600) + `]}]}`, "values", "1000"},
		{"GET /v1/distributions?name=a&window=minute&n=367", "", "n", "1 to 366"},
		{"GET /v1/distributions?name=a&distinct=true", "", "distinct", "no parameter"},
		{"GET /v1/distributions?name=a&name=b&window=hour&n=200", "", "n", "too many at once"},
		{"GET /v1/counters?name=a&distinct=1", "", "distinct", "true or false"},
		{"POST /v1/counters/set", `{"set":[]}`, "set", "required"},
		{"POST /v1/counters/set", `{"set":[{"name":"a","value":1},{"name":"a"}]}`, "set[1].value", "required"},
		{"POST /v1/counters/set", `{"set":[{"name":"a","value":null}]}`, "set[0].value", "required"},
		{"POST /v1/counters/set", `{"set":[{"name":"","value":1}]}`, "set[0].name", "empty"},
		{"POST /v1/counters/set", `{"set":[{"name":"a","value":1,"window":"week"}]}`, "window", "month or year"},
		{"GET /v1/counters?name=a&zone=Local", "", "zone", "Asia/Shanghai"},
		{"GET /v1/counters?name=a&n=3", "", "n", "no parameter"},
		{"GET /v1/counters?" + strings.Repeat("name=a&", counter.MaxBatch+1), "", "name", "256"},
		{"GET /v1/counters/history?name=a&window=day&n=0", "", "n", "from 1"},
		{"GET /v1/counters/history?name=a&window=day&n=x", "", "n", "whole number"},
		{"GET /v1/counters/history?name=a&window=day&n=", "", "n", "whole number"},
		{"GET /v1/counters/history?name=a&window=day&n=9999999999999999999", "", "n", "whole number"},
		{"GET /v1/counters/history?name=a&window=day&n=367", "", "n", "only 366 windows"},
		{"GET /v1/counters/history?name=a&n=2", "", "n", "only 1 window"},
		{"GET /v1/counters/history?" + strings.Repeat("name=a&", 100) + "window=hour&n=101", "", "n", "too many at once"},
	} {
		p := k.call(c.what, c.body).wantProblem(t, fault.BadField, c.words)
		if p.Field != c.field || strings.Contains(p.Detail, "weir:") || strings.Contains(p.Detail, "counter:") {
			t.Errorf("%s %s: %q in %q", c.what, c.body, p.Detail, p.Field)
		}
	}
	for _, what := range []string{"POST /v1/counters/add", "POST /v1/counters/set", "POST /v1/counters/reset", "POST /v1/distributions/observe", "POST /v1/ids", "POST /v1/boards/score", "POST /v1/hot/hit", "POST /v1/actions"} {
		k.call(what, strings.Repeat(" ", MaxCountBody+1)).wantProblem(t, fault.TooLarge)
		k.call(what, "").wantProblem(t, fault.BadBody)
		k.call(what, "{\"user\":\"\xff\"}").wantProblem(t, fault.BadBody, "UTF-8")
	}
}

// The largest batch of the longest names fits into a body.
func TestLargestBatch(t *testing.T) {
	k := keptInMemory(t, Options{})
	var want AddRequest
	for i := range counter.MaxBatch {
		name := strings.Repeat("n", counter.MaxNameLen-1) + string(rune('0'+i%10))
		want.Add = append(want.Add, CounterDelta{
			CounterKey: CounterKey{Name: name, Group: name, Window: counter.Minute, Zone: "America/Argentina/ComodRivadavia", Distinct: i == 255}})
	}
	for i := range counter.MaxBatch {
		want.Add[255].Members = append(want.Add[255].Members, strings.Repeat("m", counter.MaxNameLen-3)+fmt.Sprintf("%03d", i))
	}
	var a CountersAnswer
	k.call("POST /v1/counters/add", dump(t, want)).want(t, 200, &a)
	if len(a.Counters) != counter.MaxBatch || a.Counters[254].Value != 26*counter.One || a.Counters[255].Value != 256*counter.One {
		t.Errorf("%d counters, the last is %+v", len(a.Counters), a.Counters[len(a.Counters)-1])
	}
}

func TestDistributions(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		k.says(t, "POST /v1/distributions/observe", `{"observe":[{"name":"ms","window":"minute","values":[10,20,30]},{"name":"ms","window":"minute","values":[0.5]},{"name":"ms","values":[7.00000000005]}]}`,
			`{"observed":5}`)
		k.says(t, "GET /v1/distributions?name=ms&name=none", "",
			`{"distributions":[{"name":"ms","points":[{"count":1,"sum":7,"mean":7,"min":7,"max":7,"p50":7,"p95":7,"p99":7}],"merged":{"count":1,"sum":7,"mean":7,"min":7,"max":7,"p50":7,"p95":7,"p99":7}},`+
				`{"name":"none","points":[{"count":0}],"merged":{"count":0}}]}`)
		k.pass(time.Minute)
		k.call("POST /v1/distributions/observe", `{"observe":[{"name":"ms","window":"minute","values":[40]}]}`).want(t, 200, nil)
		k.says(t, "GET /v1/distributions?name=ms&window=minute&n=3", "",
			`{"distributions":[{"name":"ms","window":"minute","points":[{"start":"2025-12-31T23:59:00Z","count":0},`+
				`{"start":"2026-01-01T00:00:00Z","count":4,"sum":60.5,"mean":15.125,"min":0.5,"max":30,"p50":10.092544,"p95":30,"p99":30},`+
				`{"start":"2026-01-01T00:01:00Z","count":1,"sum":40,"mean":40,"min":40,"max":40,"p50":40,"p95":40,"p99":40}],`+
				`"merged":{"count":5,"sum":100.5,"mean":20.1,"min":0.5,"max":40,"p50":20.185088,"p95":40,"p99":40}}]}`)
	})
}

// A server without counters or queues says so.
func TestNothingIsKept(t *testing.T) {
	s := newStand(t, Options{})
	for _, r := range slices.Concat(counterRoutes, queueRoutes) {
		s.call(r.method+" "+strings.ReplaceAll(r.path, "{queue}", "mail"), "").wantProblem(t, fault.NotEnabled)
	}
}

// Without its store, an API of counts says so, soon and quietly.
func TestCountsAreGone(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	counters, err := counterredis.New(client, counterredis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	queues, err := redis.New(client, testQueues, redis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := keptInMemory(t, Options{Service: manage.Service{Counters: counters}, Queues: queues, QueueNames: []string{"mail"}})
	server.Kill()
	for _, c := range keptCalls {
		if strings.HasSuffix(c.what, "/ack") || strings.HasSuffix(c.what, "/nack") || strings.HasSuffix(c.what, "/extend") || strings.HasSuffix(c.what, "/return") {
			c.body = strings.Replace(c.body, `"held"`, `"1-`+strings.Repeat("0", 32)+`"`, 1)
		}
		r := k.call(c.what, c.body)
		if r.wantProblem(t, fault.StoreUnavailable); r.Header.Get("Retry-After") != "5" || strings.Contains(string(r.body), server.Addr) {
			t.Errorf("%s: %v %s", c.what, r.Header, r.body)
		}
	}
	if lines := strings.Count(k.log.String(), "counters or queues unavailable"); lines != 1 {
		t.Errorf("the log has %d lines: %s", lines, k.log)
	}
	k.pass(time.Second)
	k.call("GET /v1/counters?name=a", "")
	if lines := strings.Count(k.log.String(), "counters or queues unavailable"); lines != 2 {
		t.Errorf("a second later the log has %d lines: %s", lines, k.log)
	}
}

// Names that are not UTF-8, which the API in Go allows, do no harm in JSON.
func TestNamesOfOthers(t *testing.T) {
	k := keptInMemory(t, Options{})
	if _, err := k.options.Counters.Score(t.Context(), counter.Board{Name: "b"}, counter.Mark{Member: "\xff\"", By: counter.One}); err != nil {
		t.Fatal(err)
	}
	k.says(t, "GET /v1/boards/top?board=b", "", `{"places":[{"rank":1,"member":"\ufffd\"","score":1}],"members":1,"dropped":0}`)
}
