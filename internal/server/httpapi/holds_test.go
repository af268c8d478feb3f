package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/store/memory"
)

const tokenRules = `
rules:
  - {id: requests, key: user, algorithm: fixed_window, limit: 10/1h}
  - {id: tokens, key: user, algorithm: fixed_window, limit: 1000/1h, unit: tokens}
  - {id: trial, key: user, algorithm: fixed_window, limit: 2000/1h, unit: tokens, mode: shadow}
`

// reservation reserves 10 units, and returns the hold.
func (s *stand) reservation(t *testing.T) string {
	t.Helper()
	var a CheckAnswer
	s.call("POST /v1/reserve", `{"user":"alice","path":"/api/x","cost":10,"ttl_ms":30000}`).want(t, 200, &a)
	if a.Hold == "" {
		t.Fatalf("%+v", a)
	}
	return a.Hold
}

func (r *reply) wantBody(t *testing.T, status int, body string) {
	t.Helper()
	if got := strings.TrimSpace(string(r.body)); r.StatusCode != status || got != body {
		t.Errorf("%d %s,\nwant %d %s", r.StatusCode, got, status, body)
	}
}

// holdsTried are calls that give every answer about holds.
func holdsTried() []tried {
	nothing := func(*stand, string) {}
	expired := func(s *stand, _ string) { s.now.Add(time.Minute.Microseconds()) }
	all := []tried{
		{what: "POST /v1/reserve", body: `{"user":"alice","path":"/api/x","cost":{"tokens":5},"ttl_ms":1}`, status: 200, rules: tokenRules},
		{what: "POST /v1/reserve", body: `{"user":"alice"}`, status: 200, rules: "rules: [{id: at-once, key: user, limit: 5/1m, concurrency: 1, hold_ttl: 30s, tiers: {pro: {concurrency: 5}}}]"},
		{what: "POST /v1/reserve", body: `{"user":"alice","path":"/api/x","peek":true}`, status: 400},
		{what: "POST /v1/reserve", body: "{}", status: 403, headers: []string{"Host: evil.example.com"}},
		{what: "POST /v1/reserve", body: strings.Repeat(" ", MaxCheckBody+1), status: 413},
		{what: "POST /v1/reserve", body: `{"user":"alice"}`, status: 422, rules: manyRules()},
		{what: "POST /v1/reserve", body: `{"path":"/safe"}`, status: 503, gone: true, late: true},
		{what: "POST /v1/extend", body: `{"hold":"HOLD","ttl_ms":1000}`, status: 202, gone: true, reserved: func(s *stand, hold string) {
			s.call("POST /v1/cancel", `{"hold":"`+hold+`"}`)
		}},
		{what: "POST /v1/extend", body: `{"hold":"00000000000000000000000000000000"}`, status: 503, gone: true},
	}
	for call, body := range map[string]string{"settle": `{"hold":"HOLD","used":3}`, "cancel": `{"hold":"HOLD"}`, "extend": `{"hold":"HOLD","ttl_ms":1000}`} {
		what := "POST /v1/" + call
		all = append(all,
			tried{what: what, body: body, status: 200, reserved: nothing},
			tried{what: what, body: `{"hold":"x"}`, status: 400},
			tried{what: what, body: body, status: 403, headers: []string{"Host: evil.example.com"}},
			tried{what: what, body: strings.Replace(body, "HOLD", strings.Repeat("0", 32), 1), status: 404},
			tried{what: what, body: body, status: 409, reserved: expired},
			tried{what: what, body: strings.Repeat(" ", maxSmallBody+1), status: 413},
		)
		if call != "extend" {
			all = append(all,
				tried{what: what, body: body, status: 202, gone: true, reserved: nothing},
				tried{what: what, body: body, status: 503, gone: true, reserved: func(s *stand, _ string) { s.engine.Close() }},
			)
		}
	}
	return all
}

func TestHolds(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	remaining := func(want string) {
		t.Helper()
		var a KeysAnswer
		s.call("GET /v1/keys?key=user:alice", "").want(t, 200, &a)
		got := ""
		for _, r := range a.Results {
			got += fmt.Sprintf("%s %d, ", r.Rule, r.Remaining)
		}
		if got != want {
			t.Errorf("%s remain, want %s", got, want)
		}
	}
	var a CheckAnswer
	s.call("POST /v1/reserve", `{"user":"alice","cost":{"tokens":700},"ttl_ms":90000}`).want(t, 200, &a)
	if !a.Allowed || len(a.Hold) != 32 || !a.HoldExpiresAt.Equal(begin.Add(90*time.Second)) {
		t.Fatalf("%+v", a)
	}
	remaining("requests 9, tokens 300, trial 1300, ")
	s.call("POST /v1/extend", `{"hold":"`+a.Hold+`"}`).wantBody(t, 200, `{"state":"open","expires_at":"2026-01-01T00:01:00.5Z","parts":[`+
		`{"rule":"requests","reserved":1,"used":0},{"rule":"tokens","unit":"tokens","reserved":700,"used":0},{"rule":"trial","unit":"tokens","shadow":true,"reserved":700,"used":0}]}`)
	settled := `{"state":"settled","parts":[{"rule":"requests","reserved":1,"used":1},{"rule":"tokens","unit":"tokens","reserved":700,"used":150},{"rule":"trial","unit":"tokens","shadow":true,"reserved":700,"used":150}]}`
	s.call("POST /v1/settle", `{"hold":"`+a.Hold+`","used":{"tokens":150}}`).wantBody(t, 200, settled)
	s.call("POST /v1/settle", `{"hold":"`+strings.ToUpper(a.Hold)+`","used":3}`).wantBody(t, 200, settled)
	s.call("POST /v1/cancel", `{"hold":"`+a.Hold+`"}`).wantBody(t, 200, settled)
	remaining("requests 9, tokens 850, trial 1850, ")

	// What is done already is charged beyond the limit.
	var paid CheckAnswer
	s.call("POST /v1/check", `{"user":"alice","cost":{"tokens":5000},"charge":"always"}`).want(t, 200, &paid)
	if paid.Allowed || paid.Rule != "tokens" || paid.Hold != "" {
		t.Errorf("%+v", paid)
	}
	remaining("requests 8, tokens 0, trial 0, ")
	s.call("POST /v1/check", `{"user":"alice","cost":{"tokens":9000},"charge":"always"}`).want(t, 200, &paid)
	if got := paid.Results; got[0].Excess != 0 || got[1].Excess != 3150 || got[2].Excess != 0 {
		t.Errorf("as deep in debt as can be: %+v", got)
	}
	s.call("POST /v1/reserve", `{"user":"alice","cost":{"tokens":1}}`).want(t, 200, &paid)
	if paid.Allowed || paid.Hold != "" {
		t.Errorf("in debt: %+v", paid)
	}
	var free CheckAnswer
	if r := s.call("POST /v1/reserve", `{}`).want(t, 200, &free); strings.Contains(string(r.body), "hold") {
		t.Errorf("nothing was charged: %s", r.body)
	}
}

// A hold has a place of a request in flight until it ends; a check has one until it expires.
func TestHoldsInFlight(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: [{id: at-once, key: user, concurrency: 1, hold_ttl: 30s}]")}})
	var a, denied CheckAnswer
	s.call("POST /v1/reserve", `{"user":"alice","cost":7,"ttl_ms":90000}`).want(t, 200, &a)
	if !a.Allowed || a.Results[0].Policy != "concurrency 1" || a.Results[0].Algorithm != "in_flight" || !a.HoldExpiresAt.Equal(begin.Add(30*time.Second)) {
		t.Fatalf("%+v", a)
	}
	s.call("POST /v1/check", `{"user":"alice"}`).want(t, 200, &denied)
	if denied.Allowed || *denied.RetryAfterMS != 1000 || *denied.Results[0].RetryAfterMS != 30_000 {
		t.Errorf("%+v", denied)
	}
	s.now.Add((20 * time.Second).Microseconds())
	s.call("POST /v1/extend", `{"hold":"`+a.Hold+`","ttl_ms":90000}`).wantBody(t, 200, `{"state":"open","expires_at":"2026-01-01T00:00:50.5Z","parts":[{"rule":"at-once","reserved":1,"used":0}]}`)
	s.now.Add((20 * time.Second).Microseconds())
	if s.call("POST /v1/check", `{"user":"alice"}`).want(t, 200, &denied); denied.Allowed {
		t.Errorf("the place is free, and its hold was extended: %+v", denied)
	}
	s.call("POST /v1/settle", `{"hold":"`+a.Hold+`","used":7}`).wantBody(t, 200, `{"state":"settled","parts":[{"rule":"at-once","reserved":1,"used":0}]}`)
	for _, want := range []bool{true, false} {
		s.call("POST /v1/check", `{"user":"alice"}`).want(t, 200, &a)
		if a.Allowed != want {
			t.Errorf("%+v", a)
		}
	}
	s.now.Add((30 * time.Second).Microseconds())
	if s.call("POST /v1/check", `{"user":"alice"}`).want(t, 200, &a); !a.Allowed {
		t.Errorf("after hold_ttl: %+v", a)
	}
}

// What is sent is bounded, and nothing in an id is believed.
func TestHoldsInvalid(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	units := make([]string, manage.MaxCosts+1)
	for i := range units {
		units[i] = fmt.Sprintf(`"u%d":1`, i)
	}
	many := "{" + strings.Join(units, ",") + "}"
	const id = `"hold":"00000000000000000000000000000000"`
	for _, c := range []struct{ call, body, field string }{
		{"reserve", `{"ttl_ms":-1}`, "ttl_ms"}, {"reserve", `{"ttl_ms":86400001}`, "ttl_ms"}, {"reserve", `{"ttl_ms":9223372036854775807}`, "ttl_ms"},
		{"reserve", `{"ttl_ms":1.5}`, "ttl_ms"}, {"reserve", `{"ttl_ms":1,"ttl_ms":2}`, "ttl_ms"}, {"reserve", `{"peek":true}`, "peek"}, {"reserve", `{"charge":"always"}`, "charge"},
		{"check", `{"ttl_ms":1}`, "ttl_ms"}, {"check", `{"charge":"never"}`, "charge"}, {"check", `{"charge":"always","peek":true}`, "charge"},
		{"check", `{"cost":"5"}`, "cost"}, {"check", `{"cost":[5]}`, "cost"}, {"check", `{"cost":{"tokens":"5"}}`, "cost"}, {"check", `{"cost":{"tokens":{}}}`, "cost"},
		{"check", `{"cost":{"tokens":0}}`, "cost"}, {"check", `{"cost":{"tokens":1125899906842625}}`, "cost"}, {"check", `{"cost":{"TOKENS":5}}`, "cost"},
		{"check", `{"cost":{"":5}}`, "cost"}, {"check", `{"cost":{"a":1,"a":2}}`, "a"}, {"check", `{"cost":` + many + `}`, "cost"},
		{"settle", `{"used":1}`, "hold"}, {"settle", `{` + id + `}`, "used"}, {"settle", `{` + id + `,"used":null}`, "used"}, {"settle", `{` + id + `,"used":-1}`, "used"},
		{"settle", `{` + id + `,"used":{"tokens":-1}}`, "used"}, {"settle", `{` + id + `,"used":{"tokens":null}}`, "used"}, {"settle", `{` + id + `,"used":` + many + `}`, "used"}, {"settle", `{` + id + `,"used":1e99}`, "used"},
		{"settle", `{"hold":"` + strings.Repeat("0", 33) + `","used":1}`, "hold"}, {"settle", `{"hold":"zz000000000000000000000000000000","used":1}`, "hold"},
		{"cancel", `{` + id + `,"used":1}`, "used"}, {"extend", `{` + id + `,"ttl_ms":-5}`, "ttl_ms"}, {"extend", `{` + id + `,"ttl_ms":86400001}`, "ttl_ms"},
	} {
		var p Problem
		s.call("POST /v1/"+c.call, c.body).want(t, 400, &p)
		if p.Field != c.field {
			t.Errorf("%s %.60s: %+v, want the field %s", c.call, c.body, p, c.field)
		}
	}
	s.call("POST /v1/settle", `{`+id+`,"used":1}`).wantProblem(t, fault.HoldUnknown, "no such hold")
}

// A unit that no rule has is refused wherever there is a cost by unit, and so is a number of tokens
// under a rule that has a price for each.
func TestUnknownUnit(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, `
rules:
  - {id: model, key: user, algorithm: fixed_window, limit: 10000/1h, tokens: {}}
  - {id: money, match: {path: /paid}, key: user, algorithm: fixed_window, limit: 10000/1h, tokens: {weights: {output: 4}}}
`)}})
	var a CheckAnswer
	s.call("POST /v1/reserve", `{"user":"alice","cost":{"tokens":3000}}`).want(t, 200, &a)
	if a.Results[0].Cost != 3000 || a.Remaining != 7000 {
		t.Fatalf("%+v", a)
	}
	const names = `no rule has the unit \"tokns\"; there are tokens.`
	for call, body := range map[string]string{
		"check": `{"user":"alice","cost":{"tokns":3}`, "reserve": `{"user":"alice","cost":{"tokns":3}`,
		"settle": `{"hold":"` + a.Hold + `","used":{"tokns":3}`,
	} {
		r := s.call("POST /v1/"+call, body+"}")
		if r.wantProblem(t, fault.BadField, "no rule has the unit"); !strings.Contains(string(r.body), names) {
			t.Errorf("%s: %s", call, r.body)
		}
	}
	for _, more := range []string{`"peek":true`, `"charge":"always"`} {
		s.call("POST /v1/check", `{"user":"bob","cost":{"tokns":3},`+more+`}`).wantProblem(t, fault.BadField, "no rule has the unit")
	}
	s.call("POST /v1/check", `{"user":"alice","path":"/paid","cost":3}`).wantProblem(t, fault.BadField, "cost: the rule money has weights")
	s.call("POST /v1/settle", `{"hold":"`+a.Hold+`","used":{"tokens":5}}`).wantBody(t, 200, `{"state":"settled","parts":[{"rule":"model","unit":"tokens","reserved":3000,"used":5}]}`)
}

// A page in a browser can neither reserve nor settle.
func TestHoldsFromBrowsers(t *testing.T) {
	s := newStand(t, Options{})
	for _, call := range []string{"reserve", "settle", "cancel", "extend"} {
		if r := s.call("POST /v1/"+call, "{}", "Sec-Fetch-Site: cross-site", "Origin: https://evil.example.com"); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", call, r.StatusCode, r.body)
		}
	}
}

// A reservation for which there is no place says so.
func TestReserveWithoutPlace(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	s.store.HoldStore = memory.New(memory.Options{MaxKeys: 64})
	for i := range 64 {
		var a CheckAnswer
		s.call("POST /v1/reserve", fmt.Sprintf(`{"user":"%d","path":"/api/x"}`, i)).want(t, 200, &a)
		if !a.Allowed || a.Degraded || a.Unheld != (a.Hold == "") || a.Unheld != a.HoldExpiresAt.IsZero() {
			t.Fatalf("%d: %+v", i, a)
		}
		if a.Unheld {
			return
		}
	}
	t.Error("there is always a place")
}
