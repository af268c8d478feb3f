package httpapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
)

// remembering opens what statistics and alerts need.
func remembering(t *testing.T, o *Options) { withStats(t, o) }

// lostArchive does so, too, and then the archive is lost.
func lostArchive(t *testing.T, o *Options) {
	_, kept := withStats(t, o)
	kept.lost.Store(true)
}

// remembered is a server that has something to tell of.
func remembered(t *testing.T, o *Options) {
	recorder, _ := withStats(t, o)
	judge := newStand(t, Options{Stats: recorder})
	for range 3 {
		judge.call("POST /v1/check", bobLogsIn).want(t, 200, nil)
	}
	judge.call("POST /v1/check", aliceAsks).want(t, 200, nil)
	recorder.ObserveHold(engine.HoldEvent{Kind: engine.SettledHold, Parts: []engine.SettledPart{{Rule: "api", Reserved: 3, Used: 1}}})
	recorder.ObserveSpend(engine.Spend{Rule: "api", Key: "user:bob", Model: "=gpt", Currency: "usd", Units: 1_500_000, Tokens: rule.Usage{Input: 7, Output: 9}})
	recorder.ObserveUpstream("shop", 502, time.Millisecond, nil)
	if err := recorder.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// leased is one that has leases.
func leased(_ *testing.T, o *Options) { o.Leases = someLeases }

// attacked is one that has denied another client often.
func attacked(t *testing.T, o *Options) {
	remembered(t, o)
	judge := newStand(t, Options{Stats: o.Stats})
	for range 20 {
		judge.call("POST /v1/check", strings.Replace(bobLogsIn, "192.0.2.9", "192.0.2.8", 1)).want(t, 200, nil)
	}
	if err := o.Stats.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// followed is a server whose maximum number of streams is reached.
func followed(t *testing.T, o *Options) {
	withStats(t, o)
	o.Stats, _, _ = newRecorder(t, stats.Options{MaxSubscribers: 1})
	if _, err := o.Stats.Subscribe(); err != nil {
		t.Fatal(err)
	}
}

// statsTried are calls for TestAnswersAreAsDescribed.
var statsTried = []tried{
	{what: "GET /v1/stats/summary?from=1767225599&to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/summary?from=x", status: 400, with: remembering},
	{what: "GET /v1/stats/summary", status: 404},
	{what: "GET /v1/stats/summary", status: 503, with: lostArchive},
	{what: "GET /v1/stats/summary", status: 503, with: remembering, late: true},
	{what: "GET /v1/stats/series?from=1767225590&to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/series?from=1767225590&to=1767225602&rule=api", status: 200, with: remembered},
	{what: "GET /v1/stats/series?step=x", status: 400, with: remembering},
	{what: "GET /v1/stats/series?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/series", status: 503, with: lostArchive},
	{what: "GET /v1/stats/top", status: 200, with: remembered},
	{what: "GET /v1/stats/top?n=x", status: 400, with: remembering},
	{what: "GET /v1/stats/top?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/top", status: 503, with: lostArchive},
	{what: "GET /v1/stats/rules?from=1767225590&to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/rules?by=x", status: 400, with: remembering},
	{what: "GET /v1/stats/rules", status: 404},
	{what: "GET /v1/stats/rules", status: 503, with: lostArchive},
	{what: "GET /v1/stats/clients?to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/clients?n=x", status: 400, with: remembering},
	{what: "GET /v1/stats/clients?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/clients", status: 503, with: lostArchive},
	{what: "GET /v1/stats/client?key=ip:192.0.2.9&to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/client", status: 400, with: remembering},
	{what: "GET /v1/stats/client?key=x", status: 404},
	{what: "GET /v1/stats/client?key=x", status: 503, with: lostArchive},
	{what: "GET /v1/stats/denials?rule=login", status: 200, with: remembered},
	{what: "GET /v1/stats/denials?n=x", status: 400, with: remembering},
	{what: "GET /v1/stats/denials?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/denials", status: 503, with: lostArchive},
	{what: "GET /v1/stats/warnings?rule=login", status: 200, with: remembered},
	{what: "GET /v1/stats/warnings?n=x", status: 400, with: remembering},
	{what: "GET /v1/stats/warnings?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/warnings", status: 503, with: lostArchive},
	{what: "GET /v1/stats/usage?rule=login&to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/usage", status: 400, with: remembering},
	{what: "GET /v1/stats/usage?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/usage?rule=api", status: 503, with: lostArchive},
	{what: "GET /v1/stats/holds?rule=api&to=1767225602", status: 200, with: remembered},
	{what: "GET /v1/stats/holds", status: 400, with: remembering},
	{what: "GET /v1/stats/holds?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/holds?rule=api", status: 503, with: lostArchive},
	{what: "GET /v1/stats/suggest?rule=login&to=1767229200", status: 200, with: remembered},
	{what: "GET /v1/stats/suggest", status: 400, with: remembering},
	{what: "GET /v1/stats/suggest?rule=none", status: 404, with: remembering},
	{what: "GET /v1/stats/suggest?rule=api", status: 503, with: lostArchive},
	{what: "GET /v1/stats/stream", status: 200, with: remembered},
	{what: "GET /v1/stats/stream?x=1", status: 400, with: remembering},
	{what: "GET /v1/stats/stream", status: 404},
	{what: "GET /v1/stats/stream", status: 503, with: followed},

	{what: "GET /v1/now", status: 200, with: alarmed},
	{what: "GET /v1/now", status: 200, with: remembered},
	{what: "GET /v1/now", status: 200, with: attacked, rules: "block: {ip: [192.0.2.9]}"},
	{what: "GET /v1/now", status: 200, with: lostArchive},
	{what: "GET /v1/now", status: 200, options: Options{StoreKind: "redis", Outage: func() (time.Time, error) { return begin, errors.New("refused") }, NotLoaded: func() (time.Time, error) { return begin, errors.New("line 3") }}},
	{what: "GET /v1/now?x=1", status: 400},
	{what: "GET /v1/leases", status: 200, with: leased},
	{what: "GET /v1/leases?rule=none", status: 200, with: leased},
	{what: "GET /v1/leases?x=1", status: 400, with: leased},
	{what: "GET /v1/leases", status: 404},

	{what: "GET /v1/spend?by=client,model,day&to=2026-01-01", status: 200, with: remembered},
	{what: "GET /v1/spend?format=csv", status: 200, with: remembered},
	{what: "GET /v1/spend?by=tier", status: 400, with: remembering},
	{what: "GET /v1/spend", status: 404},
	{what: "GET /v1/spend", status: 503, with: lostArchive},

	{what: "GET /v1/version", status: 200, tokens: true, headers: []string{as(readerToken)}},
	{what: "GET /v1/version", status: 200},
	{what: "GET /v1/version?x=1", status: 400},
	{what: "GET /v1/version", status: 401, tokens: true},
	{what: "GET /v1/version", status: 403, headers: []string{"Host: evil.example.com"}},
	{what: "GET /v1/whoami", status: 200, tokens: true, headers: []string{as(readerToken)}},
	{what: "GET /v1/whoami", status: 200},
	{what: "GET /v1/whoami?x=1", status: 400},
	{what: "GET /v1/whoami", status: 401, tokens: true},
	{what: "GET /v1/whoami", status: 403, headers: []string{"Host: evil.example.com"}},
}

// alertsTried are calls for TestAnswersAreAsDescribed.
var alertsTried = []tried{
	{what: "GET /v1/alerts", status: 200, with: alarmed},
	{what: "GET /v1/alerts?x=1", status: 400, with: remembering},
	{what: "GET /v1/alerts", status: 404},
	{what: "POST /v1/alerts/test?x=1", status: 400, with: remembering},
	{what: "POST /v1/alerts/test", status: 404},
	{what: "POST /v1/alerts/silences", body: `{"id":"denied","for_s":60}`, status: 201, with: remembering},
	{what: "POST /v1/alerts/silences", body: `{"id":"denied","for_s":0}`, status: 200, with: remembering},
	{what: "POST /v1/alerts/silences", body: `{"id":"none","for_s":0}`, status: 400, with: remembering},
	{what: "POST /v1/alerts/silences", body: `{"id":"denied","for_s":60}`, status: 404},
	{what: "POST /v1/alerts/silences", body: string(make([]byte, maxAlertBody+1)), status: 413, with: remembering},
	{what: "POST /v1/alerts/silences", body: `{"id":"denied","for_s":60}`, status: 503, with: lostArchive},
}
