package grpcapi

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Charge implements pb.LimiterServer.
func (l limiter) Charge(ctx context.Context, req *pb.CheckRequest) (*pb.CheckResponse, error) {
	return l.judge(ctx, req, bearer.Charge, l.s.options.Engine.Charge)
}

// Reserve implements pb.LimiterServer.
func (l limiter) Reserve(ctx context.Context, req *pb.ReserveRequest) (*pb.CheckResponse, error) {
	ttl, err := readTTL(req.GetTtl())
	if err != nil {
		return nil, err
	}
	return l.judge(ctx, req.GetRequest(), bearer.Check, func(ctx context.Context, r *rule.Request, v *engine.Verdict) error {
		return l.s.options.Engine.Reserve(ctx, r, ttl, v)
	})
}

// Settle implements pb.LimiterServer.
func (l limiter) Settle(ctx context.Context, req *pb.SettleRequest) (*pb.HoldResponse, error) {
	k, err := l.settler(ctx)
	if err != nil {
		return nil, err
	}
	bad := manage.CheckUsed(req.GetUsed())
	if bad == nil {
		bad = manage.CheckUnits("used_by_unit", req.GetUsedByUnit(), 0)
	}
	var used engine.Used = engine.Units(req.GetUsed())
	switch {
	case bad != nil:
		return nil, badField.of("%s", bad.Detail).in(bad.Field)
	case req.Used == nil && len(req.GetUsedByUnit()) == 0:
		return nil, badField.of("used: required; send the units that were used, or call Cancel if there are none.").in("used")
	case req.Used != nil && len(req.GetUsedByUnit()) > 0:
		return nil, badField.of("used_by_unit: it cannot be combined with used; send one of them.").in("used_by_unit")
	case req.Used == nil:
		used = engine.ByUnit(req.GetUsedByUnit())
	}
	return l.hold(req.GetHold(), func(id weir.HoldID) (engine.Settled, error) {
		s, err := l.s.options.Engine.Settle(ctx, id, used)
		if err == nil {
			l.s.named(ctx, &k).Settled(&s, used)
		}
		if invalid, ok := errors.AsType[*weir.InvalidError](err); ok && req.Used == nil {
			err = &weir.InvalidError{Field: "used_by_unit", Reason: invalid.Reason}
		}
		return s, err
	})
}

// Cancel implements pb.LimiterServer.
func (l limiter) Cancel(ctx context.Context, req *pb.CancelRequest) (*pb.HoldResponse, error) {
	if _, err := l.settler(ctx); err != nil {
		return nil, err
	}
	return l.hold(req.GetHold(), func(id weir.HoldID) (engine.Settled, error) { return l.s.options.Engine.Cancel(ctx, id) })
}

// Extend implements pb.LimiterServer.
func (l limiter) Extend(ctx context.Context, req *pb.ExtendRequest) (*pb.HoldResponse, error) {
	if _, err := l.settler(ctx); err != nil {
		return nil, err
	}
	ttl, err := readTTL(req.GetTtl())
	if err != nil {
		return nil, err
	}
	return l.hold(req.GetHold(), func(id weir.HoldID) (engine.Settled, error) { return l.s.options.Engine.Extend(ctx, id, ttl) })
}

// settler finds out who wants to end or extend a hold.
func (l limiter) settler(ctx context.Context) (manage.Checker, error) {
	k, err := l.s.checker(ctx)
	if err == nil {
		err = turnAway(k.Need(bearer.Check))
	}
	return k, err
}

// readTTL reads the time after which a hold expires; 0 is the default.
func readTTL(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	ttl := d.AsDuration()
	if d.CheckValid() != nil || ttl < time.Millisecond || ttl > weir.MaxHoldTTL {
		return 0, badField.of("ttl: it is out of range; send 1 ms to 24 h, or leave it out for 60 s.").in("ttl")
	}
	return ttl, nil
}

// hold answers a call about a hold.
func (l limiter) hold(text string, do func(weir.HoldID) (engine.Settled, error)) (*pb.HoldResponse, error) {
	id, bad := manage.HoldOf(text)
	if bad != nil {
		return nil, badField.of("%s", bad.Detail).in(bad.Field)
	}
	s, err := do(id)
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return nil, badField.of("%s", manage.Sentence(err)).in(invalid.Field)
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return nil, contextEnded(err)
	case err != nil:
		l.s.options.Logger.Warn("a hold could not be settled", "error", err)
		return nil, storeGone.of("The store is unavailable; try again.").wait(outage)
	case s.State == weir.HoldUnknown:
		return nil, holdUnknown.of("There is no such hold, or it ended too long ago; charge what is not charged yet with Charge.").in("hold")
	case s.State == weir.HoldExpired:
		return nil, holdExpired.of("The hold has expired, and its units stay charged unless the rule has on_expiry: release; charge the rest with Charge.").in("hold")
	}
	answer := &pb.HoldResponse{State: holdStates[s.State]}
	if s.State == weir.HoldOpen {
		answer.ExpiresAt = timestamppb.New(s.Expires.Time())
	}
	for _, p := range s.Parts {
		answer.Parts = append(answer.Parts, &pb.HoldPart{
			Rule: valid(p.Rule), Unit: p.Unit, Shadow: p.Shadow, Reserved: p.Reserved, Used: p.Used, Excess: p.Excess,
		})
	}
	return answer, nil
}

var holdStates = map[weir.HoldState]pb.HoldState{
	weir.HoldOpen: pb.HoldState_HOLD_STATE_OPEN, weir.HoldSettled: pb.HoldState_HOLD_STATE_SETTLED, weir.HoldPending: pb.HoldState_HOLD_STATE_PENDING,
}
