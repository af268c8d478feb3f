package client

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/testkit"
)

const tokenRules = `
rules:
  - {id: requests, key: user, algorithm: sliding_log, limit: 10/1d}
  - {id: tokens, key: user, algorithm: sliding_log, limit: 1000/1d, unit: tokens}
exempt: {user: bob}
`

func TestHold(t *testing.T) {
	s := startService(t, &service{engine: newEngine(t, tokenRules)})
	c := connect(t, s, Options{})
	ask := &Request{User: "alice", Costs: map[string]int64{"tokens": 700}}
	hold, v, err := c.Reserve(t.Context(), ask, time.Hour)
	if err != nil || !v.Allowed || hold == nil || time.Until(hold.Expires) < 59*time.Minute {
		t.Fatalf("%+v, %+v, %v", hold, v, err)
	}
	if none, v, err := c.Reserve(t.Context(), ask, 0); err != nil || v.Allowed || none != nil {
		t.Errorf("%+v, %+v, %v", none, v, err)
	}
	if s := testkit.Must(hold.Extend(t.Context(), 2*time.Hour))(t); time.Until(s.Expires) < 119*time.Minute || len(s.Parts) != 2 {
		t.Errorf("%+v", s)
	}
	want := Settled{Parts: []Part{{Rule: "requests", Reserved: 1, Used: 1}, {Rule: "tokens", Unit: "tokens", Reserved: 700, Used: 100}}}
	if s := testkit.Must(hold.SettleUnits(t.Context(), map[string]int64{"tokens": 100}))(t); !reflect.DeepEqual(s, want) {
		t.Errorf("%+v", s)
	}
	if s := testkit.Must(c.Hold(hold.ID).Settle(t.Context(), 5))(t); !reflect.DeepEqual(s, want) {
		t.Errorf("again: %+v", s)
	}
	hold, _, _ = c.Reserve(t.Context(), ask, 0)
	if s := testkit.Must(hold.Cancel(t.Context()))(t); s.Parts[1].Used != 0 || s.Parts[1].Reserved != 700 {
		t.Errorf("%+v", s)
	}
	if v := testkit.Must(c.Charge(t.Context(), &Request{User: "alice", Costs: map[string]int64{"tokens": 2000}}))(t); v.Allowed || v.Rule != "tokens" {
		t.Errorf("%+v", v)
	}
	if v := testkit.Must(c.Charge(t.Context(), &Request{User: "alice", Costs: map[string]int64{"tokens": 20_000}}))(t); v.Results[1].Excess != 11_100 {
		t.Errorf("as deep in debt as can be: %+v", v)
	}

	// What was not charged has nothing to settle.
	none, v, err := c.Reserve(t.Context(), &Request{User: "bob"}, 0)
	if err != nil || !v.Allowed || none != nil || testkit.Err(none.Settle(t.Context(), 5)) != nil {
		t.Errorf("%+v, %+v, %v", none, v, err)
	}
}

func TestHoldErrors(t *testing.T) {
	s := startService(t, &service{engine: newEngine(t, tokenRules)})
	c := connect(t, s, Options{})
	for range 2 * maxFailures { // which open no breaker
		if _, err := c.Hold(strings.Repeat("0", 32)).Cancel(t.Context()); !errors.Is(err, ErrHoldUnknown) {
			t.Fatal(err)
		}
	}
	if _, err := c.Hold("x").Cancel(t.Context()); err == nil || errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	// A unit that no rule has is a mistake of the caller, whatever the fallback.
	misspelt := map[string]int64{"tokns": 1}
	open, _, err := c.Reserve(t.Context(), &Request{User: "alice"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, settled := open.SettleUnits(t.Context(), misspelt)
	_, _, reserved := c.Reserve(t.Context(), &Request{User: "alice", Costs: misspelt}, 0)
	_, checked := c.Check(t.Context(), &Request{User: "alice", Costs: misspelt})
	for _, err := range []error{settled, reserved, checked} {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `no rule has the unit "tokns"; there are tokens`) {
			t.Error(err)
		}
	}
	if s := testkit.Must(open.Cancel(t.Context()))(t); s.Pending || len(s.Parts) != 2 {
		t.Errorf("%+v", s)
	}
	hold, _, err := c.Reserve(t.Context(), &Request{User: "alice"}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	until(t, c, &Request{User: "alice"}, func(*Verdict) bool { return time.Now().After(hold.Expires) })
	if _, err := hold.Settle(t.Context(), 1); !errors.Is(err, ErrHoldExpired) {
		t.Error(err)
	}
	s.kill()
	if _, err := hold.Settle(t.Context(), 1); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if none, v, err := c.Reserve(t.Context(), &Request{User: "alice"}, 0); err != nil || !v.Degraded || none != nil {
		t.Errorf("%+v, %+v, %v", none, v, err)
	}
}
