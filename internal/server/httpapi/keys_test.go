package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/redis"
)

func TestKeys(t *testing.T) {
	s := newStand(t, Options{})
	for range 3 {
		s.call("POST /v1/check", `{"user":"alice","path":"/api/x","tier":"pro"}`).want(t, 200, nil)
	}
	var a KeysAnswer
	s.call("GET /v1/keys?key=user:alice&tier=pro", "").want(t, 200, &a)
	if a.Key != "user:alice" || a.Version != 2 || len(a.Results) != 1 {
		t.Fatalf("%+v", a)
	}
	if r := a.Results[0]; r.Rule != "api" || r.Key != "user:alice" || r.Policy != "1000/1m" || r.Remaining != 997 || !r.Asked || !r.Allowed || r.RetryAfterMS == nil || r.ResetAfterMS != 180 {
		t.Errorf("%+v", r)
	}
	s.call("GET /v1/keys?key=user:alice&rule=api&tier=enterprise", "").want(t, 200, &a)
	if len(a.Results) != 0 {
		t.Errorf("who is unlimited has %+v", a.Results)
	}
	for _, c := range []struct{ key, tier, comes, want string }{
		{"user:alice", "", "", "pro seen 1000/1m"},
		{"user:alice", "enterprise", "", "enterprise asked"},
		{"user:bob", "", "", " unknown 100/1m"},
		{"user:bob", "", "enterprise", "enterprise seen"},
		{"ip:198.51.100.7", "", "", " none 2/1m"},
	} {
		if c.comes != "" {
			s.call("POST /v1/check", `{"user":"bob","path":"/api/x","tier":"`+c.comes+`"}`).want(t, 200, nil)
		}
		a = KeysAnswer{}
		s.call("GET /v1/keys?key="+c.key+"&tier="+c.tier, "").want(t, 200, &a)
		got := a.Tier + " " + a.TierFrom
		for _, r := range a.Results {
			got += " " + r.Policy
		}
		if got != c.want {
			t.Errorf("%s, asked for %q: got %q, want %q", c.key, c.tier, got, c.want)
		}
	}
	var f ResetAnswer
	s.call("DELETE /v1/keys?key=user:alice&rule=api", "").want(t, 200, &f)
	if f.Key != "user:alice" || !slices.Equal(f.Rules, []string{"api"}) {
		t.Errorf("%+v", f)
	}
	s.call("GET /v1/keys?key=user:alice&tier=pro", "").want(t, 200, &a)
	if a.Results[0].Remaining != 1000 {
		t.Errorf("after it was reset: %+v", a.Results[0])
	}
}

func TestKeysProblems(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct {
		query, field string
		kind         *fault.Kind
	}{
		{"", "key", fault.BadField}, {"key=", "key", fault.BadField}, {"key=user:a&key=user:b", "key", fault.BadField},
		{"key=alice", "key", fault.BadField}, {"key=ip:1.2.3.4&rule=api", "key", fault.BadField},
		{"key=user:a&rule=none", "rule", fault.NoRule}, {"key=user:a&limit=1", "limit", fault.BadField},
		{"key=user:" + strings.Repeat("x", 1020), "key", fault.BadField},
	} {
		for _, method := range []string{"GET", "DELETE"} {
			p := s.call(method+" /v1/keys?"+c.query, "").wantProblem(t, c.kind)
			if p.Field != c.field {
				t.Errorf("%s %s: the field is %q in %+v", method, c.query, p.Field, p)
			}
		}
	}
	s.call("GET /v1/keys?key=ip:1.2.3.4&rule=api", "").wantProblem(t, fault.BadField, `key: This is not part of the rule's key; write it as`)
	s.call("GET /v1/keys?key=user:a&tier="+strings.Repeat("x", manage.MaxWord+1), "").wantProblem(t, fault.BadField)
	s.store.lost.Store(true)
	for _, method := range []string{"GET", "DELETE"} {
		r := s.call(method+" /v1/keys?key=user:alice", "")
		if r.wantProblem(t, fault.StoreUnavailable); r.Header.Get("Retry-After") != "5" || strings.Contains(string(r.body), errLost.Error()) {
			t.Errorf("%s: %v %s", method, r.Header, r.body)
		}
	}
}

// A key that needs to be escaped comes back as an answer names it.
func TestKeysRoundTrip(t *testing.T) {
	s := newStand(t, Options{})
	for _, user := range []string{`a|b\c`, "é &?=#+%", "two words"} {
		body := dump(t, CheckRequest{User: user, Path: "/api/x"})
		var checked CheckAnswer
		s.call("POST /v1/check", body).want(t, 200, &checked)
		var a KeysAnswer
		s.call("GET /v1/keys?key="+url.QueryEscape(checked.Results[0].Key), "").want(t, 200, &a)
		if a.Results[0].Key != checked.Results[0].Key || a.Results[0].Remaining != 99 {
			t.Errorf("%q: %+v", user, a)
		}
	}
}

// A real Redis that is killed: checks go on, and keys say that they cannot be had.
func TestRedisIsKilled(t *testing.T) {
	server := testredis.Start(t)
	store, err := redis.Open("redis://" + server.Addr + "?timeout=2s")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Options{Service: manage.Service{Engine: e}})
	const ask = `{"user":"alice","path":"/api/x"}`
	var a CheckAnswer
	s.call("POST /v1/check", ask).want(t, 200, &a)
	if a.Degraded || a.Remaining != 99 {
		t.Fatalf("%+v", a)
	}
	s.call("GET /v1/keys?key=user:alice", "").want(t, 200, &KeysAnswer{})
	server.Kill()
	for range 20 {
		a = CheckAnswer{}
		s.call("POST /v1/check", ask).want(t, 200, &a)
		if !a.Allowed || !a.Degraded {
			t.Fatalf("%+v", a)
		}
		s.call("POST /v1/check", `{"path":"/safe"}`).want(t, 200, &a)
		if a.Allowed || a.Status != 503 {
			t.Fatalf("%+v", a)
		}
		s.call("GET /v1/keys?key=user:alice", "").wantProblem(t, fault.StoreUnavailable)
		s.call("DELETE /v1/keys?key=user:alice", "").wantProblem(t, fault.StoreUnavailable)
	}
}

// A penalty that runs is part of every answer about the client, and a reset ends it.
func TestKeysPenalty(t *testing.T) {
	s := newStand(t, Options{})
	s.call("POST /v1/rules", `{id: guesses, match: {path: /guess}, key: user, algorithm: sliding_log, limit: 1/1m, penalty: {after: 2, within: 1m, for: 15m}}`).want(t, 201, nil)
	var a CheckAnswer
	for i, penalty := range []bool{false, false, true, true} {
		s.call("POST /v1/check", `{"user":"eve","path":"/guess"}`).want(t, 200, &a)
		if a.Allowed != (i == 0) || a.Results[0].Penalty != penalty || penalty && (*a.RetryAfterMS != 900_000 || a.Rule != "guesses" || a.Limit != 1) {
			t.Errorf("request %d: %+v", i+1, a)
		}
	}
	var k KeysAnswer
	s.call("GET /v1/keys?key=user:eve&rule=guesses", "").want(t, 200, &k)
	if len(k.Results) != 1 || !k.Results[0].Penalty || k.Results[0].ResetAfterMS != 900_000 {
		t.Errorf("%+v", k)
	}
	s.call("DELETE /v1/keys?key=user:eve&rule=guesses", "").want(t, 200, nil)
	a = CheckAnswer{}
	s.call("POST /v1/check", `{"user":"eve","path":"/guess"}`).want(t, 200, &a)
	if !a.Allowed || a.Results[0].Penalty {
		t.Errorf("after it was reset: %+v", a)
	}
}
