package manage

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/trust"
)

const (
	adminToken  = "an-admin-token-of-the-tests"
	readerToken = "a-reader-token-of-the-tests"
)

func newGuard(t testing.TB, now *weir.Micros) (*Guard, *trust.List) {
	t.Helper()
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGuard(GuardOptions{
		Calls:    weir.Limit{N: 10, Period: time.Second},
		Failures: weir.Limit{Algorithm: weir.SlidingLog, N: 3, Period: time.Minute},
		Clock:    func() weir.Micros { return *now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, list
}

var client = netip.MustParseAddr("192.0.2.1")

func TestAllow(t *testing.T) {
	now := weir.Micros(0)
	for _, c := range []struct {
		authorization []string
		needs         trust.Rights
		name          string
		want          error
	}{
		{nil, trust.Read, "", ErrNoToken},
		{[]string{"Bearer " + adminToken}, trust.Admin, "alice", nil},
		{[]string{"bearer  " + adminToken + " "}, trust.Read, "alice", nil},
		{[]string{"Bearer " + readerToken}, trust.Read, "bob", nil},
		{[]string{"Bearer " + readerToken}, trust.Admin, "bob", new(RightError)},
		{[]string{"Bearer " + adminToken, "Bearer " + adminToken}, trust.Read, "", ErrNoToken},
		{[]string{"Bearer"}, trust.Read, "", ErrNoToken},
		{[]string{"Basic " + adminToken}, trust.Read, "", ErrNoToken},
		{[]string{adminToken}, trust.Read, "", ErrNoToken},
		{[]string{"Bearer nobody-knows-this-token"}, trust.Read, "", ErrWrongToken},
	} {
		g, list := newGuard(t, &now)
		caller, err := g.Allow(t.Context(), list, Visit{Client: client, Credentials: Credentials{Authorization: c.authorization}, Needs: c.needs})
		if right := new(RightError); errors.As(c.want, &right) {
			if is[*RightError](t, err).Holder != "bob" {
				t.Error(err)
			}
		} else if !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.authorization, err, c.want)
		}
		if caller.Name != c.name {
			t.Errorf("%v is %+v, want %q", c.authorization, caller, c.name)
		}
		if caller, err = g.Allow(t.Context(), nil, Visit{Client: client, Credentials: Credentials{Authorization: c.authorization}, Needs: c.needs}); caller.Name != "" || caller.Via != ByNothing || err != nil {
			t.Errorf("without a list: %+v %v", caller, err)
		}
	}
}

func TestIdentify(t *testing.T) {
	now := weir.Micros(0)
	_, list := newGuard(t, &now)
	for _, c := range []struct {
		list          *trust.List
		authorization []string
		want          trust.Holder
		err           error
	}{
		{nil, nil, trust.Holder{Rights: trust.Admin}, nil},
		{nil, []string{"Bearer nobody-knows-this-token"}, trust.Holder{Rights: trust.Admin}, nil},
		{list, []string{"Bearer " + adminToken}, trust.Holder{Name: "alice", Rights: trust.Admin}, nil},
		{list, []string{"Bearer " + readerToken}, trust.Holder{Name: "bob", Rights: trust.Read}, nil},
		{list, nil, trust.Holder{}, ErrNoToken},
		{list, []string{"Bearer nobody-knows-this-token"}, trust.Holder{}, ErrWrongToken},
	} {
		if got, err := Identify(c.list, Credentials{Authorization: c.authorization}, time.Time{}); got.Holder != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: %+v, %v", c.authorization, got, err)
		}
	}
}

// Who tries tokens is stopped, and then not even the right one helps, until the time is
// over; others are not affected, and calls without a token are no tries.
func TestWrongTokens(t *testing.T) {
	now := weir.Micros(0)
	g, list := newGuard(t, &now)
	try := func(client, bearer string) error {
		now += weir.Micros(time.Second.Microseconds())
		v := Visit{Client: netip.MustParseAddr(client), Credentials: Credentials{Authorization: []string{"Bearer " + bearer}}}
		if bearer == "" {
			v.Authorization = nil
		}
		_, err := g.Allow(t.Context(), list, v)
		return err
	}
	for range 5 {
		if err := try("192.0.2.1", ""); !errors.Is(err, ErrNoToken) {
			t.Error(err)
		}
	}
	for range 3 {
		if err := try("192.0.2.1", "nobody-knows-this-token"); !errors.Is(err, ErrWrongToken) {
			t.Error(err)
		}
	}
	for _, bearer := range []string{"nobody-knows-this-token", adminToken, readerToken} {
		v := is[*TooOftenError](t, try("192.0.2.1", bearer)).Verdict
		if s := v.Speaker(); s.Rule.ID != "wrong-tokens" || s.RetryAfter <= 0 {
			t.Errorf("%+v", v)
		}
	}
	if err := try("192.0.2.2", adminToken); err != nil {
		t.Error(err)
	}
	now += weir.Micros(time.Minute.Microseconds())
	if err := try("192.0.2.1", adminToken); err != nil {
		t.Error(err)
	}
}

func TestTooManyCalls(t *testing.T) {
	now := weir.Micros(0)
	g, _ := newGuard(t, &now)
	for i := range 12 {
		_, err := g.Allow(t.Context(), nil, Visit{Client: client})
		if (err == nil) != (i < 10) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Allow(ctx, nil, Visit{Client: client}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNewGuard(t *testing.T) {
	if _, err := NewGuard(GuardOptions{Calls: weir.Limit{N: 1}}); err == nil || !strings.Contains(err.Error(), "limits of the guard") {
		t.Error(err)
	}
	g, err := NewGuard(GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // the burst of the default
		if _, err := g.Allow(t.Context(), nil, Visit{Client: client}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}
