package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// MaxChecks is how many requests CheckMany takes.
const MaxChecks = 100

// limiter is the service Limiter.
type limiter struct {
	pb.UnimplementedLimiterServer
	s *Server
}

// question is what one check needs on its way, used again for the next.
type question struct {
	said    manage.Question
	verdict engine.Verdict
}

var questions = sync.Pool{New: func() any { return new(question) }}

// release keeps nothing of this question but the room of the verdict, which clears itself.
func (q *question) release() {
	q.said = manage.Question{}
	questions.Put(q)
}

// readFields takes in what a client says, if it makes sense.
func (q *question) readFields(req *pb.CheckRequest) error {
	priority := req.GetPriority()
	if _, known := pb.Priority_name[int32(priority)]; !known {
		return fault.Field("priority", "%d is unknown; send critical, high, normal or low, or leave it out.", priority)
	}
	q.said = manage.Question{
		Request: rule.Request{
			Priority: rule.Priority(priority), // the numbers are the same
			User:     req.GetUser(), APIKey: req.GetApiKey(), Tier: req.GetTier(), Method: req.GetMethod(), Host: req.GetHost(),
			Path: req.GetPath(), Attributes: req.GetAttributes(), Cost: req.GetCost(), Costs: req.GetCosts(),
		},
		Headers: req.GetHeaders(), Cookies: req.GetCookies(), Parameters: req.GetQuery(),
	}
	return q.said.Read(req.GetIp())
}

// Check implements pb.LimiterServer. That the store is unavailable is no error here: each rule
// has said what happens then.
func (l limiter) Check(ctx context.Context, req *pb.CheckRequest) (*pb.CheckResponse, error) {
	return l.judge(ctx, req, trust.Check, l.s.options.Engine.Check)
}

// Peek implements pb.LimiterServer.
func (l limiter) Peek(ctx context.Context, req *pb.CheckRequest) (*pb.CheckResponse, error) {
	return l.judge(ctx, req, trust.Peek, l.s.options.Engine.Peek)
}

func (l limiter) judge(ctx context.Context, req *pb.CheckRequest, right trust.Rights, ask manage.Asking) (*pb.CheckResponse, error) {
	k, err := l.s.checker(ctx)
	if err != nil {
		return nil, failed(err, "")
	}
	q := questions.Get().(*question)
	defer q.release()
	if err := q.put(ctx, req, &k, right, ask); err != nil {
		return nil, failed(err, "")
	}
	if right == trust.Charge {
		l.s.withClient(ctx, &k).Charged(&q.verdict, nil)
	}
	return answer(&q.verdict), nil
}

// put asks what a client says, if the client may.
func (q *question) put(ctx context.Context, req *pb.CheckRequest, k *manage.Checker, right trust.Rights, ask manage.Asking) error {
	if err := q.readFields(req); err != nil {
		return err
	}
	return k.Ask(ctx, right, &q.said.Request, &q.verdict, ask)
}

// CheckMany implements pb.LimiterServer. All requests are validated before the first is
// charged.
func (l limiter) CheckMany(ctx context.Context, req *pb.CheckManyRequest) (*pb.CheckManyResponse, error) {
	k, err := l.s.checker(ctx)
	if err != nil {
		return nil, failed(err, "")
	}
	if n := len(req.GetRequests()); n > MaxChecks {
		return nil, failed(fault.Field("requests", "%d requests exceed the maximum of %d; send several calls.", n, MaxChecks), "")
	}
	q := questions.Get().(*question)
	defer q.release()
	for i, one := range req.GetRequests() {
		if err := q.put(ctx, one, &k, trust.Check, l.s.options.Engine.Validate); err != nil {
			return nil, ofRequest(i, err)
		}
	}
	all := &pb.CheckManyResponse{Responses: make([]*pb.CheckResponse, 0, len(req.GetRequests()))}
	for i, one := range req.GetRequests() {
		if err := q.put(ctx, one, &k, trust.Check, l.s.options.Engine.Check); err != nil {
			return nil, ofRequest(i, err)
		}
		all.Responses = append(all.Responses, answer(&q.verdict))
	}
	return all, nil
}

// ofRequest says of which of several requests an error is.
func ofRequest(i int, err error) error {
	if f := calls.Of(err); f != nil {
		f.Detail = manage.Clip(fmt.Sprintf("Request %d: %s", i+1, f.Detail))
		if f.Field != "" {
			f.Field = fmt.Sprintf("requests[%d].%s", i, f.Field)
		}
		err = f
	}
	return failed(err, "")
}

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
			return s, fault.Field("used", "required; send the units that were used, or call Cancel if there are none.")
		case req.Used != nil && len(req.GetUsedByUnit()) > 0:
			return s, fault.Field("used_by_unit", "it cannot be combined with used; send one of them.")
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
		return 0, fault.Field("ttl", "it is out of range; send 1 ms to 24 h, or leave it out for 60 s.")
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
	id, err := manage.HoldOf(text)
	if err != nil {
		return nil, failed(err, "")
	}
	s, err := do(id, &k)
	if err := l.s.trouble(callOf(ctx)).Ended(&s, err); err != nil {
		return nil, failed(err, "")
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
