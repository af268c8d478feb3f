package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
)

// keptCalls is every call about counts and work, as it succeeds where withKept has put
// something.
var keptCalls = []struct{ what, body string }{
	{"POST /v1/counters/add", `{"add":[{"name":"a"},{"name":"a","group":"g","window":"day","zone":"Asia/Shanghai","by":-2.5}]}`},
	{"POST /v1/counters/add", `{"add":[{"name":"a","window":"month","distinct":true,"members":["alice"]}]}`},
	{"POST /v1/counters/set", `{"set":[{"name":"a","value":0.5},{"name":"a","group":"g","window":"month","zone":"Asia/Shanghai","value":-2.5}]}`},
	{"POST /v1/counters/reset", `{"reset":[{"name":"a"}]}`},
	{"GET /v1/counters?name=a&name=b&window=day", ""},
	{"GET /v1/counters/names?n=50", ""},
	{"GET /v1/counters/history?name=a&window=hour&n=3", ""},
	{"POST /v1/distributions/observe", `{"observe":[{"name":"d","window":"minute","values":[12.5,80]},{"name":"d","group":"g","values":[0]}]}`},
	{"GET /v1/distributions?name=d&name=none&window=minute&n=2", ""},
	{"POST /v1/ids", `{"sequence":"orders"}`},
	{"POST /v1/boards/score", `{"board":{"name":"b","window":"day"},"score":[{"member":"m"},{"member":"n","by":2.5}]}`},
	{"GET /v1/boards/top?board=b&window=day", ""},
	{"GET /v1/boards/standing?board=b&window=day&member=m&member=none", ""},
	{"POST /v1/hot/hit", `{"list":{"name":"l","window_s":60,"threshold":1},"items":["x"]}`},
	{"GET /v1/hot?list=l&window_s=60&threshold=1", ""},
	{"GET /v1/hot/events?list=l&window_s=60&threshold=1", ""},
	{"POST /v1/actions", `{"user":"u","actions":["like","share"]}`},
	{"GET /v1/actions?user=u&action=like", ""},
	{"GET /v1/actions/history?user=u&action=like", ""},

	{"GET /v1/queues", ""},
	{"GET /v1/queues/mail", ""},
	{"POST /v1/queues/mail/push", `{"payload":"to alice","id":"4711"}`},
	{"POST /v1/queues/slow/lease", `{}`},
	{"POST /v1/queues/mail/ack", `{"token":"held"}`},
	{"POST /v1/queues/mail/nack", `{"token":"held","reason":"no such mailbox"}`},
	{"POST /v1/queues/mail/extend", `{"token":"held"}`},
	{"POST /v1/queues/mail/return", `{"token":"held"}`},
	{"GET /v1/queues/mail/dead", ""},
	{"POST /v1/queues/mail/requeue", `{"numbers":[1767225600500000]}`},
	{"POST /v1/queues/mail/delete", `{"numbers":[1767225600500000]}`},
}

// holding is a store of which one lease has a token that tests can write down.
type holding struct {
	queue.Store
	token string
}

func (h *holding) real(token string) string {
	if token == "held" {
		return h.token
	}
	return token
}

func (h *holding) Ack(ctx context.Context, name, token string) error {
	return h.Store.Ack(ctx, name, h.real(token))
}

func (h *holding) Nack(ctx context.Context, name, token string, f queue.Failure) (queue.Outcome, error) {
	return h.Store.Nack(ctx, name, h.real(token), f)
}

func (h *holding) Extend(ctx context.Context, name, token string) (time.Duration, error) {
	return h.Store.Extend(ctx, name, h.real(token))
}

func (h *holding) Return(ctx context.Context, name, token string) error {
	return h.Store.Return(ctx, name, h.real(token))
}

// withKept opens counters and queues in memory. mail has a dead letter and a lease; slow
// has a dead letter, and is full.
func withKept(t *testing.T, o *Options) {
	t.Helper()
	ctx := t.Context()
	counters := countermemory.New(countermemory.Options{})
	for _, key := range []counter.Key{{Name: "full"}, {Name: "full", Group: "user:u", Window: counter.Day}} {
		if _, err := counters.Add(ctx, counter.Delta{Key: key, By: counter.MaxAmount}); err != nil {
			t.Fatal(err)
		}
		if err := counters.Observe(ctx, counter.Sample{Key: key, Values: []counter.Amount{counter.MaxAmount}}); err != nil {
			t.Fatal(err)
		}
	}
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	if _, err := counters.Hit(ctx, list, "y"); err != nil {
		t.Fatal(err)
	}
	if _, err := counters.Score(ctx, counter.Board{Name: "b", Window: counter.Day}, counter.Mark{Member: "m", By: counter.One}); err != nil {
		t.Fatal(err)
	}
	now := weir.MicrosOf(begin)
	queues, err := memory.New(testQueues, memory.Options{Clock: func() weir.Micros { return now }})
	if err != nil {
		t.Fatal(err)
	}
	var held string
	for _, name := range []string{"mail", "slow"} {
		now = weir.MicrosOf(begin) // is the number of the first item
		for i, payload := range []string{"\xff", "to bob"} {
			if _, err := queues.Push(ctx, name, queue.Work{Payload: []byte(payload)}); err != nil {
				t.Fatal(err)
			}
			if name == "slow" && i == 1 {
				break
			}
			batch, err := queues.Lease(ctx, name, queue.Ask{})
			if err != nil || len(batch.Leases) != 1 {
				t.Fatalf("%+v, %v", batch, err)
			}
			now += weir.Micros(testQueues[name].Period.Microseconds())
			if held = batch.Leases[0].Token; i == 1 {
				o.Queues = &holding{Store: queues, token: held}
				break
			}
			if _, err := queues.Nack(ctx, name, held, queue.Failure{Reason: "no use", Bury: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	o.Counters, o.QueueNames = counters, []string{"mail", "slow"}
}

// keptTried are the answers that calls about counts and work can give.
func keptTried(ours func(path string) bool) []tried {
	var all []tried
	guessing := Options{Service: manage.Service{Limits: manage.GuardOptions{Failures: weir.Limit{Algorithm: weir.SlidingLog, N: 1, Period: time.Hour}}}}
	for _, c := range keptCalls {
		method, target, _ := strings.Cut(c.what, " ")
		path, _, _ := strings.Cut(target, "?")
		if !ours(path) {
			continue
		}
		status := 200
		if strings.HasSuffix(path, "/push") {
			status = 202
		}
		all = append(all,
			tried{what: c.what, body: c.body, status: status, with: withKept},
			tried{what: method + " " + path + "?x=1", body: c.body, status: 400, with: withKept},
			tried{what: c.what, body: c.body, status: 401, tokens: true},
			tried{what: c.what, body: c.body, status: 403, headers: []string{"Host: evil.example.com"}},
			tried{what: c.what, body: c.body, status: 404},
			tried{what: c.what, body: c.body, status: 429, tokens: true, tired: true, headers: []string{as("wrong-but-long-enough-for-one")}, options: guessing},
			tried{what: c.what, body: c.body, status: 503, late: true, with: withKept})
		if method == "POST" {
			all = append(all, tried{what: c.what, body: strings.Repeat(" ", MaxCountBody+1), status: 413, with: withKept})
		}
	}
	return all
}

func aboutQueues(path string) bool { return strings.HasPrefix(path, "/v1/queues") }

// countersTried are calls for TestAnswersAreAsDescribed.
var countersTried = append(keptTried(func(path string) bool { return !aboutQueues(path) }),
	tried{what: "POST /v1/counters/add", body: `{"add":[{"name":"full"}]}`, status: 422, with: withKept},
	tried{what: "POST /v1/boards/score", body: `{"board":{"name":"b","window":"day"},"score":[{"member":"m","by":9007199254.740991}]}`, status: 422, with: withKept},
	tried{what: "POST /v1/actions", body: `{"user":"u","actions":["full"]}`, status: 422, with: withKept},
	tried{what: "POST /v1/distributions/observe", body: `{"observe":[{"name":"full","values":[1]}]}`, status: 422, with: withKept},
	tried{what: "GET /v1/distributions?name=full", status: 200, with: withKept},
	tried{what: "GET /v1/counters?name=a&distinct=true", status: 200, with: withKept},
	tried{what: "GET /v1/counters/history?name=full", status: 200, with: withKept},
	tried{what: "GET /v1/boards/top?board=none&sliding_s=60", status: 200, with: withKept},
)

// queuesTried are calls for TestAnswersAreAsDescribed.
var queuesTried = append(keptTried(aboutQueues),
	tried{what: "GET /v1/queues/none", status: 404, with: withKept},
	tried{what: "POST /v1/queues/slow/push", body: `{"payload":""}`, status: 429, with: withKept},
	tried{what: "POST /v1/queues/slow/requeue", body: `{"numbers":[1767225600500000]}`, status: 429, with: withKept},
	tried{what: "POST /v1/queues/mail/ack", body: `{"token":"lost"}`, status: 409, with: withKept},
	tried{what: "POST /v1/queues/mail/nack", body: `{"token":"lost"}`, status: 409, with: withKept},
	tried{what: "POST /v1/queues/mail/nack", body: `{"token":"held","bury":true}`, status: 200, with: withKept},
	tried{what: "POST /v1/queues/mail/extend", body: `{"token":"lost"}`, status: 409, with: withKept},
	tried{what: "POST /v1/queues/mail/return", body: `{"token":"lost"}`, status: 409, with: withKept},
	tried{what: "POST /v1/queues/mail/lease", body: `{}`, status: 200, with: withKept},
)

// Every route is among the calls that are tried.
func TestKeptCallsAreComplete(t *testing.T) {
	h := &Handler{}
	h.mount(routes())
	seen := map[string]bool{}
	for _, c := range keptCalls {
		method, target, _ := strings.Cut(c.what, " ")
		path, _, _ := strings.Cut(target, "?")
		found, _, _ := h.findRoute(method, path)
		seen[found.name] = true
	}
	for _, r := range append(counterRoutes[:len(counterRoutes):len(counterRoutes)], queueRoutes...) {
		if !seen[r.pattern()] {
			t.Errorf("%s is not tried; add it to the list", r.pattern())
		}
	}
}

// Who may look may not count, who may count may not decide about dead letters, and no
// page of another site may do either.
func TestKeptTokens(t *testing.T) {
	const useToken = "a-using-token-of-the-tests"
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\ncarol use " + useToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{}
	h.mount(routes())
	for _, c := range keptCalls {
		method, target, _ := strings.Cut(c.what, " ")
		path, _, _ := strings.Cut(target, "?")
		found, _, _ := h.findRoute(method, path)
		o := Options{Service: manage.Service{Tokens: func() *trust.List { return list }}}
		withKept(t, &o)
		s := newStand(t, o)
		s.call(c.what, c.body).wantProblem(t, fault.TokenRequired)
		s.call(c.what, c.body, as("wrong-but-long-enough-for-one")).wantProblem(t, fault.InvalidToken)
		rejected := map[access]int{looking: 0, using: 1, changing: 2}[found.needs]
		for i, bearer := range []string{readerToken, useToken, adminToken} {
			r := s.call(c.what, c.body, as(bearer))
			switch {
			case i < rejected:
				r.wantProblem(t, fault.Forbidden)
			case i == rejected && r.StatusCode > 202:
				t.Errorf("%s with %s: %d %s", c.what, bearer, r.StatusCode, r.body)
			}
			if got := r.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("%s: Cache-Control: %s", c.what, got)
			}
		}
		if logged := strings.Contains(s.log.String(), found.name); logged != (found.needs == changing || found.needs == reading) {
			t.Errorf("%s: the log is %s", c.what, s.log)
		}
		o.Tokens = nil
		s = newStand(t, o)
		s.call(c.what, c.body, "Host: evil.example.com").wantProblem(t, fault.ForeignHost)
		if method == "POST" {
			s.call(c.what, c.body, "Origin: https://evil.example.com").wantProblem(t, fault.ForeignOrigin)
		}
	}
}
