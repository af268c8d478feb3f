package grpcapi

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Charge implements pb.LimiterServer.
func (l limiter) Charge(ctx context.Context, req *pb.CheckRequest) (*pb.CheckResponse, error) {
	return l.judge(ctx, req, trust.Charge, l.s.options.Engine.Charge)
}

// Reserve implements pb.LimiterServer.
func (l limiter) Reserve(ctx context.Context, req *pb.ReserveRequest) (*pb.CheckResponse, error) {
	ttl, err := readTTL(req.GetTtl())
	if err != nil {
		return nil, failed(err, "")
	}
	return l.judge(ctx, req.GetRequest(), trust.Check, func(ctx context.Context, r *rule.Request, v *engine.Verdict) error {
		return l.s.options.Engine.Reserve(ctx, r, ttl, v)
	})
}

// Settle implements pb.LimiterServer.
func (l limiter) Settle(ctx context.Context, req *pb.SettleRequest) (*pb.HoldResponse, error) {
	return l.hold(ctx, req.GetHold(), func(id weir.HoldID, k *manage.Checker) (s engine.Settled, err error) {
		var used engine.Used = engine.Units(req.GetUsed())
		bad := manage.CheckUsed(req.GetUsed())
		if bad == nil {
			bad = manage.CheckUnits("used_by_unit", req.GetUsedByUnit(), 0)
		}
		switch {
		case bad != nil:
			return s, bad
		case req.Used == nil && len(req.GetUsedByUnit()) == 0:
			return s, fault.BadField.Of("used: required; send the units that were used, or call Cancel if there are none.").In("used")
		case req.Used != nil && len(req.GetUsedByUnit()) > 0:
			return s, fault.BadField.Of("used_by_unit: it cannot be combined with used; send one of them.").In("used_by_unit")
		case req.Used == nil:
			used = engine.ByUnit(req.GetUsedByUnit())
		}
		if s, err = l.s.options.Engine.Settle(ctx, id, used); err == nil {
			l.s.withClient(ctx, k).Settled(&s, used)
		}
		if invalid, ok := errors.AsType[*weir.InvalidError](err); ok && req.Used == nil {
			err = &weir.InvalidError{Field: "used_by_unit", Reason: invalid.Reason}
		}
		return s, err
	})
}

// Cancel implements pb.LimiterServer.
func (l limiter) Cancel(ctx context.Context, req *pb.CancelRequest) (*pb.HoldResponse, error) {
	return l.hold(ctx, req.GetHold(), func(id weir.HoldID, _ *manage.Checker) (engine.Settled, error) {
		return l.s.options.Engine.Cancel(ctx, id)
	})
}

// Extend implements pb.LimiterServer.
func (l limiter) Extend(ctx context.Context, req *pb.ExtendRequest) (*pb.HoldResponse, error) {
	return l.hold(ctx, req.GetHold(), func(id weir.HoldID, _ *manage.Checker) (engine.Settled, error) {
		ttl, err := readTTL(req.GetTtl())
		if err != nil {
			return engine.Settled{}, err
		}
		return l.s.options.Engine.Extend(ctx, id, ttl)
	})
}

// readTTL reads the time after which a hold expires; 0 is the default.
func readTTL(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	ttl := d.AsDuration()
	if d.CheckValid() != nil || ttl < time.Millisecond || ttl > weir.MaxHoldTTL {
		return 0, fault.BadField.Of("ttl: it is out of range; send 1 ms to 24 h, or leave it out for 60 s.").In("ttl")
	}
	return ttl, nil
}

// hold answers a call about a hold, if the client may make it.
func (l limiter) hold(ctx context.Context, text string, do func(weir.HoldID, *manage.Checker) (engine.Settled, error)) (*pb.HoldResponse, error) {
	k, err := l.s.checker(ctx)
	if err == nil {
		err = k.Need(trust.Check)
	}
	if err != nil {
		return nil, failed(err, "")
	}
	id, bad := manage.HoldOf(text)
	if bad != nil {
		return nil, failed(bad, "")
	}
	s, err := do(id, &k)
	if err != nil && calls.Of(err) == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		l.s.options.Logger.Warn("a hold could not be settled", "error", err)
		err = fault.Hold()
	}
	if err != nil {
		return nil, failed(err, "")
	}
	if f := calls.Hold(s.State); f != nil {
		return nil, failed(f, "")
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
