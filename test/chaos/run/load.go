package run

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// load are clients that ask, each at its own pace, whatever the others get.
type load struct {
	traffic *plan.Traffic
	fleet   []*instance
	checker *check.Checker
	now     func() time.Duration
	http    *http.Client

	asking  sync.RWMutex // locked for writing while no requests may be sent
	running sync.WaitGroup
}

const (
	clients = 24

	// unused is when a client closes a connection that it does not use. A server closes one on
	// which nothing came for 10 s, and a request that is sent at that moment has no answer.
	unused = 5 * time.Second
)

func newLoad(rules plan.Rules, fleet []*instance, checker *check.Checker, now func() time.Duration) *load {
	return &load{traffic: plan.NewTraffic(rules), fleet: fleet, checker: checker, now: now,
		http: &http.Client{Timeout: check.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: clients, IdleConnTimeout: unused}}}
}

// start lets clients ask until the context ends, rate times a second in all.
func (l *load) start(ctx context.Context, seed uint64, rate float64) {
	every := time.Duration(float64(clients*time.Second) / rate)
	for n := range clients {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		l.running.Go(func() {
			// A pace of its own for each, or they would all come at once.
			own := every - every/10 + time.Duration(r.Int64N(int64(every/5)))
			for tick := time.Tick(own); ctx.Err() == nil; <-tick {
				q, to := l.traffic.Draw(r), l.fleet[r.IntN(len(l.fleet))]
				l.checker.Note(l.ask(q, to))
			}
		})
	}
}

// quiet calls a function while there are no requests and no connections.
func (l *load) quiet(do func()) {
	l.asking.Lock()
	defer l.asking.Unlock()
	l.http.CloseIdleConnections()
	do()
}

func (l *load) stop() {
	l.running.Wait()
	l.http.CloseIdleConnections()
}

// said is the part of an answer that the checker wants.
type said struct {
	Allowed      bool   `json:"allowed"`
	Degraded     bool   `json:"degraded"`
	Reason       string `json:"reason"`
	RetryAfterMS *int64 `json:"retry_after_ms"`
	Results      []struct {
		Rule      string `json:"rule"`
		Key       string `json:"key"`
		Asked     bool   `json:"asked"`
		Local     bool   `json:"local"`
		DelayMS   int64  `json:"delay_ms"`
		Limit     int64  `json:"limit"`
		Remaining int64  `json:"remaining"`
	} `json:"results"`

	Hold  string `json:"hold"`
	State string `json:"state"` // of a hold
	Parts []struct {
		Rule   string `json:"rule"`
		Used   int64  `json:"used"`
		Excess int64  `json:"excess"`
	} `json:"parts"`

	Errors []struct{} `json:"errors"` // of an import
}

// by is who decided each rule.
func (s *said) by() map[string]check.By {
	by := map[string]check.By{}
	for _, r := range s.Results {
		switch {
		case r.Local:
			by[r.Rule] = check.Instance
		case r.Asked:
			by[r.Rule] = check.Store
		default:
			by[r.Rule] = check.Nobody
		}
	}
	return by
}

// call makes a call, unless there is to be quiet.
func (l *load) call(to *instance, path string, request any, s *said) check.Call {
	body, _ := json.Marshal(request)
	return l.send(to, path, body, s)
}

// send is call with a body.
func (l *load) send(to *instance, path string, body []byte, s *said) check.Call {
	l.asking.RLock()
	defer l.asking.RUnlock()
	begun := l.now() // before it is known where the instance is: it may move meanwhile
	base, life := to.at()
	c := check.Call{Instance: to.number, Life: life, Span: check.Span{From: begun}}
	response, err := l.http.Post(base+path, "application/json", bytes.NewReader(body))
	if err == nil {
		c.Status = response.StatusCode
		body, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	c.To = l.now()
	if err == nil && (c.Status == http.StatusOK || c.Status == http.StatusAccepted) {
		err = json.Unmarshal(body, s)
		c.Allowed, c.Degraded, c.By, c.State = s.Allowed, s.Degraded, s.by(), s.State
	}
	if err != nil {
		c.Status, c.Error = 0, err.Error()
	}
	return c
}

func (l *load) ask(q plan.Request, to *instance) check.Answer {
	var s said
	a := check.Answer{Request: q, Call: l.call(to, "/v1/check", q, &s)}
	a.Reason, a.Waits = s.Reason, s.RetryAfterMS != nil && *s.RetryAfterMS > 0
	for _, r := range s.Results {
		if r.DelayMS > 0 {
			if a.Delays == nil {
				a.Delays = map[string]time.Duration{}
			}
			a.Delays[r.Rule] = time.Duration(r.DelayMS) * time.Millisecond
		}
	}
	return a
}
