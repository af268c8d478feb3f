package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

const (
	aliceAsks = `{"user":"alice","path":"/api/x","tier":"pro"}`
	bobLogsIn = `{"user":"bob","ip":"192.0.2.9","method":"POST","path":"/api/login"}`
)

// traffic is what most of these tests remember: ten seconds with something in the first
// and the fifth.
func (s *statsStand) traffic() {
	s.t.Helper()
	s.check(aliceAsks, 6, 6)
	s.check(bobLogsIn, 5, 2)
	s.recorder.ObserveUpstream("shop", 200, 3*time.Millisecond, nil)
	s.recorder.ObserveUpstream("shop", 502, time.Millisecond, nil)
	s.recorder.ObserveUpstream("blog", 200, time.Millisecond, nil)
	s.pass(5)
	s.store.lost.Store(true)
	s.check(`{"path":"/safe"}`, 1, 0)
	s.check(aliceAsks, 2, 2)
	s.store.lost.Store(false)
	s.check(`{"ip":"203.0.113.66"}`, 1, 0)
	s.pass(5)
}

func TestSummary(t *testing.T) {
	up := true
	s := newStatsStand(t, Options{Outage: func() (time.Time, error) {
		if up {
			return time.Time{}, nil
		}
		return time.Unix(1_000_000, 0), errors.New("connection refused")
	}})
	s.traffic()
	var a SummaryAnswer
	r := s.call("GET /v1/stats/summary", "").want(t, 200, &a)
	want := stats.Traffic{Requests: 15, Rate: 0.25, Counts: archive.Counts{Allowed: 8, Denied: 3, DegradedAllowed: 2, DegradedDenied: 1, Blocked: 1}}
	if a.From != begin.Unix()-50 || a.To != begin.Unix()+10 || a.Window != 60 || a.Traffic != want || a.DeniedShare != 0.2 {
		t.Errorf("%s", r.body)
	}
	if l := a.Latency; l.Mean != 20*time.Microsecond || l.P50 < 20*time.Microsecond || l.P50 > 22600 || l.P99 != l.P90 {
		t.Errorf("decisions took %+v", l)
	}
	if u := a.Upstream; u == nil || u.Route != "" || u.Requests != 3 || u.Errors != 1 || u.ErrorShare != 1./3 || u.Latency.P99 < 3*time.Millisecond || u.Latency.P99 > 3400*time.Microsecond {
		t.Errorf("upstream: %+v", u)
	}
	if len(a.Routes) != 2 || a.Routes[0].Route != "blog" || a.Routes[0].Requests != 1 || a.Routes[1].ErrorShare != 0.5 {
		t.Errorf("routes: %+v", a.Routes)
	}
	if a.Store.Up != true || a.Recorder.Sampling != 1 || a.Recorder.UnavailableSince != nil || a.Recorder.Error != "" || a.Local {
		t.Errorf("%+v %+v", a.Store, a.Recorder)
	}
	byID := map[string]stats.RuleSummary{}
	for _, rule := range a.Rules {
		byID[rule.Rule] = rule
	}
	api := byID["api"]
	if a.Rules[0].Rule != "api" || api.Requests != 13 || api.Allowed != 11 || api.DegradedAllowed != 2 || api.Rate != 13./60 || api.Decision == nil || api.Decision.Mean != 20*time.Microsecond {
		t.Errorf("api: %+v", api)
	}
	if len(api.Tiers) != 2 || api.Tiers[0].Tier != "" || api.Tiers[0].Requests != 5 || api.Tiers[1].Tier != "pro" || api.Tiers[1].Requests != 8 || api.Tiers[1].DegradedAllowed != 2 {
		t.Errorf("tiers: %+v", api.Tiers)
	}
	if login := byID["login"]; login.Denied != 3 || login.Allowed != 2 {
		t.Errorf("login: %+v", login)
	}

	up = false
	a = SummaryAnswer{}
	r = s.call(fmt.Sprintf("GET /v1/stats/summary?from=%d.25&to=%s", begin.Unix(), begin.Add(time.Second).Format(time.RFC3339)), "").want(t, 200, &a)
	if a.Window != 1 || a.Requests != 11 || a.Rate != 11 || a.Store.Up || a.Store.UnavailableSince == nil || *a.Store.UnavailableSince != 1_000_000 || a.Store.Error != "connection refused" {
		t.Errorf("the first second: %s", r.body)
	}
	a = SummaryAnswer{}
	r = s.call(fmt.Sprintf("GET /v1/stats/summary?from=%d&to=%d", begin.Unix()-100, begin.Unix()-90), "").want(t, 200, &a)
	if a.Requests != 0 || a.Upstream != nil || !bytes.Contains(r.body, []byte(`"rules":[]`)) || bytes.Contains(r.body, []byte("routes")) {
		t.Errorf("when nothing happened: %s", r.body)
	}
}

func TestSeries(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	var a SeriesAnswer
	r := s.call("GET /v1/stats/series", "").want(t, 200, &a)
	if a.Step != 10 || a.To != begin.Unix()+10 || a.From != begin.Unix()-3590 || len(a.Points) != 360 {
		t.Fatalf("by default: %d points of %d s from %d to %d", len(a.Points), a.Step, a.From, a.To)
	}
	last := a.Points[359]
	if last.T != begin.Unix() || last.Requests != 15 || last.Rate != 1.5 || last.StatsPointTimes == nil || last.UpstreamRequests != 3 || last.UpstreamErrors != 1 || last.P50 < 20 || last.UpstreamP99 < 3000 {
		t.Errorf("%+v in %s", last, r.body)
	}
	stretch := fmt.Sprintf("from=%d&to=%d", begin.Unix(), begin.Unix()+10)
	for _, c := range []struct {
		query string
		step  int64
		sums  []int64
	}{
		{"&step=1", 1, []int64{11, 0, 0, 0, 0, 4, 0, 0, 0, 0}},
		{"&step=5s", 5, []int64{11, 4}},
		{"&step=0", 1, []int64{11, 0, 0, 0, 0, 4, 0, 0, 0, 0}},
		{"&step=5s&rule=api", 5, []int64{11, 2}},
		{"&step=10&rule=api&tier=pro", 10, []int64{8}},
		{"&step=10&rule=api&tier=(none)", 10, []int64{5}},
		{"&step=10&rule=api&tier=unheard-of", 10, []int64{0}},
		{"&step=10&rule=queue", 10, []int64{0}},
	} {
		a = SeriesAnswer{}
		r := s.call("GET /v1/stats/series?"+stretch+c.query, "").want(t, 200, &a)
		if a.Step != c.step || len(a.Points) != len(c.sums) {
			t.Errorf("%s: %s", c.query, r.body)
			continue
		}
		for i, p := range a.Points {
			ofRule := strings.Contains(c.query, "rule=")
			if p.Requests != c.sums[i] || p.T != begin.Unix()+int64(i)*c.step || (p.StatsPointTimes == nil) != ofRule {
				t.Errorf("%s: point %d is %+v", c.query, i, p)
			}
		}
		if ofRule := strings.Contains(c.query, "rule="); ofRule == bytes.Contains(r.body, []byte("_us")) {
			t.Errorf("%s: %s", c.query, r.body)
		}
	}
}

func TestTop(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	for range 3 {
		v := engine.Verdict{}
		if err := s.engine.Check(t.Context(), &rule.Request{User: "m\xffl\x00\u202e<b>", Path: "/api/x", IP: netip.MustParseAddr("192.0.2.7")}, &v); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(1)
	for _, c := range []struct {
		query, by, window, rule string
		total                   int64
		first                   []TopEntry
	}{
		{"", "denied", "hour", "", 3, []TopEntry{{Key: "ip:192.0.2.9", Count: 3}}},
		{"?by=allowed&window=minute&n=1", "allowed", "minute", "", 0, []TopEntry{{Key: "user:alice", Count: 8}}},
		{"?by=total&window=day&rule=login", "total", "day", "login", 5, []TopEntry{{Key: "ip:192.0.2.9", Count: 5}}},
		{"?rule=queue", "denied", "hour", "queue", 0, nil},
	} {
		var a TopAnswer
		r := s.call("GET /v1/stats/top"+c.query, "").want(t, 200, &a)
		if a.By != c.by || a.Window != c.window || a.Rule != c.rule || a.Sampling != 1 || a.From >= a.To || c.total > 0 && a.Total != c.total {
			t.Errorf("%s: %s", c.query, r.body)
		}
		for i, want := range c.first {
			if len(a.Entries) <= i || a.Entries[i] != want {
				t.Errorf("%s: %s", c.query, r.body)
			}
		}
		if !bytes.Contains(r.body, []byte(`"entries":[`)) {
			t.Errorf("%s: %s", c.query, r.body)
		}
	}
	var a TopAnswer
	r := s.call("GET /v1/stats/top?by=allowed&n=256", "").want(t, 200, &a)
	if !strings.Contains(fmt.Sprint(a.Entries), "{user:m\uFFFDl\x00\u202e<b> 3 0 }") || bytes.ContainsAny(r.body, "\x00<") {
		t.Errorf("a key of any bytes is %q", r.body)
	}
}

// Statistics contain no API key of a client.
func TestTopHasNoSecrets(t *testing.T) {
	s := newStatsStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: [{id: keyed, key: api_key, limit: 1/1m}]")}})
	s.check(`{"api_key":"a-secret-of-the-tests"}`, 3, 1)
	s.pass(1)
	var a TopAnswer
	r := s.call("GET /v1/stats/top", "").want(t, 200, &a)
	if len(a.Entries) != 1 || a.Entries[0].Count != 2 || !strings.HasPrefix(a.Entries[0].Key, "api_key:") || bytes.Contains(r.body, []byte("a-secret")) {
		t.Errorf("%s", r.body)
	}
}

func TestSuggest(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	var a SuggestAnswer
	if s.call("GET /v1/stats/suggest?rule=login&share=0.7,0.01", "").want(t, 200, &a); a.Suggestions[0].Data != 10 || len(a.Suggestions[0].Targets) != 1 || !a.Suggestions[0].Targets[0].Above {
		t.Errorf("after 10 s: %+v", a)
	}
	s.pass(60)
	a = SuggestAnswer{}
	r := s.call("GET /v1/stats/suggest?rule=login&share=0.7,0.01", "").want(t, 200, &a)
	if a.Rule != "login" || a.To != begin.Unix()+70 || a.From != a.To-7*24*3600 || len(a.Suggestions) != 1 {
		t.Fatalf("%s", r.body)
	}
	one := a.Suggestions[0]
	if one.Tier != "" || one.Period != 60 || one.Requests != 5 || one.Denied != 3 || len(one.Targets) != 2 {
		t.Errorf("%+v", one)
	}
	if one.Targets[0] != (SuggestTarget{Share: 0.7, Units: 2, Limit: "2/1m"}) || one.Targets[1].Share != 0.01 || !one.Targets[1].Above {
		t.Errorf("%+v", one.Targets)
	}
	s.call("GET /v1/stats/suggest?rule=api", "").want(t, 200, &a)
	if len(a.Suggestions) != 2 || a.Suggestions[1].Tier != "pro" || len(a.Suggestions[1].Targets) != len(stats.DefaultShares) {
		t.Errorf("%+v", a.Suggestions)
	}
	// A rule without traffic has no statistics, and those of a removed rule are kept.
	if r := s.call("GET /v1/stats/suggest?rule=queue", "").want(t, 200, nil); !bytes.Contains(r.body, []byte(`"suggestions":[]`)) {
		t.Errorf("%s", r.body)
	}
	s.call("PUT /v1/rules", "rules: []", "If-Match: *").want(t, 200, nil)
	s.call("GET /v1/stats/suggest?rule=login", "").want(t, 200, nil)
	for _, what := range []string{"suggest?rule=queue", "series?rule=queue", "top?rule=queue", "clients?rule=queue", "denials?rule=queue", "usage?rule=queue", "suggest?rule=%3Cb%3E%22"} {
		if p := s.call("GET /v1/stats/"+what, "").wantProblem(t, fault.NoRule, "GET /v1/rules"); p.Field != "rule" {
			t.Errorf("%s: %+v", what, p)
		}
	}
	s.call("GET /v1/stats/series?rule=(other)", "").want(t, 200, nil)
}

func TestStatsAreNotKept(t *testing.T) {
	s := newStand(t, Options{})
	for _, r := range append(statsRoutes, alertRoutes...) {
		s.call(r.method+" "+r.path, "{}").wantProblem(t, fault.NotEnabled)
	}
}

// The archive becomes unavailable: everything that needs it says so, whatever the reason is, and
// a summary says since when.
func TestArchiveIsAway(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	s.archive.lost.Store(true)
	for _, what := range []string{"summary", "series", "top", "rules", "clients", "client?key=user:alice", "denials", "usage?rule=api", "suggest?rule=api"} {
		r := s.call("GET /v1/stats/"+what, "")
		if r.wantProblem(t, fault.StoreUnavailable); r.Header.Get("Retry-After") != "5" || bytes.Contains(r.body, []byte(errArchive.Error())) {
			t.Errorf("%s: %v %s", what, r.Header, r.body)
		}
	}
	if !strings.Contains(s.log.String(), errArchive.Error()) {
		t.Errorf("the log does not say why: %s", s.log)
	}
	away := begin.Add(3 * time.Second)
	a := recorderOf(stats.Health{Pending: 7, Lost: 8, Dropped: 9, Sampling: 4, UnavailableSince: away, CompleteSince: begin, Err: errors.New("no\xff route")})
	if *a.UnavailableSince != away.Unix() || *a.CompleteSince != begin.Unix() || a.Error != "no\uFFFD route" || a.Pending != 7 || a.Lost != 8 || a.Dropped != 9 || a.Sampling != 4 {
		t.Errorf("%+v", a)
	}
}

// An archive that does not answer costs a bounded time, and however many wait for it, a
// few ask it.
func TestArchiveIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatsStand(t, Options{})
		s.archive.slow.Store(true)
		begin := time.Now()
		s.call("GET /v1/stats/summary", "").wantProblem(t, fault.StoreUnavailable)
		if took := time.Since(begin); took != maxConsult {
			t.Errorf("it took %v", took)
		}
		s.deadline = time.Now().Add(time.Second) // who cannot wait as long is told just that
		s.call("GET /v1/stats/summary", "").wantProblem(t, fault.Busy, "timed out")
		s.deadline = time.Time{}
		var wg sync.WaitGroup
		answers := make(chan *reply, maxConsulting+3)
		for range cap(answers) {
			wg.Go(func() { answers <- direct(s, "GET", "/v1/stats/series", "") })
		}
		synctest.Wait()
		if n := len(s.consulting); n != maxConsulting {
			t.Errorf("%d ask at once", n)
		}
		wg.Wait()
		close(answers)
		for r := range answers {
			if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		}
		s.archive.slow.Store(false)
		s.call("GET /v1/stats/summary", "").want(t, 200, nil)
		if len(s.consulting) != 0 {
			t.Error("a turn was not given back")
		}
	})
}
