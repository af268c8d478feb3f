package grpcapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"github.com/weirhq/weir/store/memory"
)

const tokenRules = `
rules:
  - {id: requests, key: user, algorithm: fixed_window, limit: 10/1h}
  - {id: tokens, key: user, algorithm: fixed_window, limit: 1000/1h, unit: tokens}
  - {id: trial, key: user, algorithm: fixed_window, limit: 2000/1h, unit: tokens, mode: shadow}
`

func costing(n int64) *pb.CheckRequest {
	return &pb.CheckRequest{User: "alice", Costs: map[string]int64{"tokens": n}}
}

func (s *stand) reservation(t *testing.T) *pb.CheckResponse {
	t.Helper()
	r := testkit.Must(s.limiter.Reserve(t.Context(), &pb.ReserveRequest{Request: costing(700), Ttl: durationpb.New(90 * time.Second)}))(t)
	if !r.Allowed || len(r.Hold) != 32 || !r.HoldExpiresAt.AsTime().Equal(s.time().Add(90*time.Second)) {
		t.Fatalf("%v", r)
	}
	return r
}

func TestHolds(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	remaining := func(want string) {
		t.Helper()
		got := ""
		for _, r := range testkit.Must(s.limiter.Peek(t.Context(), &pb.CheckRequest{User: "alice"}))(t).Results {
			got += fmt.Sprintf("%s %d, ", r.Rule, r.Remaining)
		}
		if got != want {
			t.Errorf("%s remain, want %s", got, want)
		}
	}
	r := s.reservation(t)
	remaining("requests 9, tokens 300, trial 1300, ")
	open := testkit.Must(s.limiter.Extend(t.Context(), &pb.ExtendRequest{Hold: r.Hold}))(t)
	if open.State != pb.HoldState_HOLD_STATE_OPEN || !open.ExpiresAt.AsTime().Equal(s.time().Add(time.Minute)) || len(open.Parts) != 3 {
		t.Errorf("%v", open)
	}
	first := testkit.Must(s.limiter.Settle(t.Context(), &pb.SettleRequest{Hold: r.Hold, UsedByUnit: map[string]int64{"tokens": 150}}))(t)
	want := &pb.HoldResponse{State: pb.HoldState_HOLD_STATE_SETTLED, Parts: []*pb.HoldPart{
		{Rule: "requests", Reserved: 1, Used: 1}, {Rule: "tokens", Unit: "tokens", Reserved: 700, Used: 150},
		{Rule: "trial", Unit: "tokens", Shadow: true, Reserved: 700, Used: 150},
	}}
	again := testkit.Must(s.limiter.Settle(t.Context(), &pb.SettleRequest{Hold: r.Hold, Used: proto.Int64(3)}))(t)
	if !proto.Equal(first, want) || !proto.Equal(again, want) {
		t.Errorf("%v, then %v", first, again)
	}
	remaining("requests 9, tokens 850, trial 1850, ")
	if c := testkit.Must(s.limiter.Cancel(t.Context(), &pb.CancelRequest{Hold: s.reservation(t).Hold}))(t); c.Parts[1].Used != 0 || c.Parts[1].Reserved != 700 {
		t.Errorf("%v", c)
	}
	remaining("requests 9, tokens 850, trial 1850, ")
	if paid := testkit.Must(s.limiter.Charge(t.Context(), costing(5000)))(t); paid.Allowed || paid.Rule != "tokens" {
		t.Errorf("%v", paid)
	}
	remaining("requests 8, tokens 0, trial 0, ")
}

// A hold that has expired is not settled, and without the store it is settled later.
func TestHoldTrouble(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	late := s.reservation(t)
	s.move(time.Hour)
	_, err := s.limiter.Cancel(t.Context(), &pb.CancelRequest{Hold: late.Hold})
	want(t, err, fault.HoldUnknown)
	late = s.reservation(t)
	s.move(91 * time.Second)
	_, err = s.limiter.Cancel(t.Context(), &pb.CancelRequest{Hold: late.Hold})
	want(t, err, fault.HoldExpired, "Charge")
	s.move(time.Hour)
	r := s.reservation(t)
	s.store.lost.Store(true)
	_, err = s.limiter.Extend(t.Context(), &pb.ExtendRequest{Hold: r.Hold})
	want(t, err, fault.StoreUnavailable)
	if p := testkit.Must(s.limiter.Settle(t.Context(), &pb.SettleRequest{Hold: r.Hold, Used: proto.Int64(1)}))(t); p.State != pb.HoldState_HOLD_STATE_PENDING {
		t.Errorf("%v", p)
	}
}

// What is sent is bounded, and nothing in an id is believed.
func TestHoldsInvalid(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	id := strings.Repeat("0", 32)
	many := map[string]int64{}
	for i := range manage.MaxCosts + 1 {
		many[fmt.Sprint("u", i)] = 1
	}
	for _, c := range []struct {
		req   any
		field string
	}{
		{&pb.SettleRequest{Used: proto.Int64(1)}, "hold"},
		{&pb.SettleRequest{Hold: id + "0", Used: proto.Int64(1)}, "hold"},
		{&pb.SettleRequest{Hold: id}, "used"},
		{&pb.SettleRequest{Hold: id, Used: proto.Int64(-1)}, "used"},
		{&pb.SettleRequest{Hold: id, Used: proto.Int64(1), UsedByUnit: map[string]int64{"a": 1}}, "used_by_unit"},
		{&pb.SettleRequest{Hold: id, UsedByUnit: map[string]int64{"A": 1}}, "used_by_unit"},
		{&pb.SettleRequest{Hold: id, UsedByUnit: many}, "used_by_unit"},
		{&pb.CancelRequest{Hold: "x"}, "hold"},
		{&pb.ExtendRequest{Hold: id, Ttl: durationpb.New(25 * time.Hour)}, "ttl"},
		{&pb.ExtendRequest{Hold: id, Ttl: &durationpb.Duration{Seconds: 1 << 60}}, "ttl"},
		{&pb.ReserveRequest{Ttl: durationpb.New(-1)}, "ttl"},
		{&pb.ReserveRequest{Request: &pb.CheckRequest{Cost: -1}}, "cost"},
		{&pb.CheckRequest{Costs: many}, "cost"},
		{&pb.CheckRequest{Costs: map[string]int64{"tokens": 0}}, "cost"},
	} {
		var err error
		switch req := c.req.(type) {
		case *pb.SettleRequest:
			_, err = s.limiter.Settle(t.Context(), req)
		case *pb.CancelRequest:
			_, err = s.limiter.Cancel(t.Context(), req)
		case *pb.ExtendRequest:
			_, err = s.limiter.Extend(t.Context(), req)
		case *pb.ReserveRequest:
			_, err = s.limiter.Reserve(t.Context(), req)
		case *pb.CheckRequest:
			_, err = s.limiter.Charge(t.Context(), req)
		}
		if p := want(t, err, fault.BadField); len(p.fields) != 1 || p.fields[0] != c.field {
			t.Errorf("%v: the fields are %q, want %s", c.req, p.fields, c.field)
		}
	}
	for i := range 1000 {
		many[fmt.Sprint("v", i)] = 1
	}
	if _, err := s.limiter.Settle(t.Context(), &pb.SettleRequest{Hold: id, UsedByUnit: many}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a thousand units: %v", err)
	}
	_, err := s.limiter.Settle(t.Context(), &pb.SettleRequest{Hold: id, Used: proto.Int64(1)})
	want(t, err, fault.HoldUnknown, "no such hold")

	// A unit that no rule has. CheckMany charges nothing of the others then.
	const names = `no rule has the unit "tokns"; there are tokens.`
	r, misspelt := s.reservation(t), map[string]int64{"tokns": 1}
	before := testkit.Must(s.limiter.Peek(t.Context(), costing(1)))(t)
	for field, err := range map[string]error{
		"used_by_unit":     testkit.Err(s.limiter.Settle(t.Context(), &pb.SettleRequest{Hold: r.Hold, UsedByUnit: misspelt})),
		"cost":             testkit.Err(s.limiter.Check(t.Context(), &pb.CheckRequest{User: "alice", Costs: misspelt})),
		"requests[1].cost": testkit.Err(s.limiter.CheckMany(t.Context(), &pb.CheckManyRequest{Requests: []*pb.CheckRequest{costing(1), {Costs: misspelt}}})),
	} {
		if p := want(t, err, fault.BadField, names); len(p.fields) != 1 || p.fields[0] != field {
			t.Errorf("the fields are %q, want %s", p.fields, field)
		}
	}
	if after := testkit.Must(s.limiter.Peek(t.Context(), costing(1)))(t); !proto.Equal(before, after) {
		t.Errorf("%v, before %v", after, before)
	}
}

// A reservation for which there is no place says so.
func TestReserveWithoutPlace(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Rules: openRules(t, tokenRules)}})
	s.store.HoldStore = memory.New(memory.Options{MaxKeys: 64})
	for i := range 64 {
		r := testkit.Must(s.limiter.Reserve(t.Context(), &pb.ReserveRequest{Request: &pb.CheckRequest{User: fmt.Sprint(i)}}))(t)
		if !r.Allowed || r.Degraded || r.Unheld != (r.Hold == "") {
			t.Fatalf("%d: %v", i, r)
		}
		if r.Unheld {
			return
		}
	}
	t.Error("there is always a place")
}
