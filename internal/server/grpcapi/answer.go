package grpcapi

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// waits is room for the durations of an answer, or of one of its results.
type waits struct {
	reset, retry, delay durationpb.Duration
	at                  timestamppb.Timestamp
}

// set fills one of them. The shortest answer has none: 0 is what is not there.
func set(room *durationpb.Duration, d time.Duration) *durationpb.Duration {
	if d <= 0 || d == weir.Never {
		return nil
	}
	room.Seconds, room.Nanos = int64(d/time.Second), int32(d%time.Second)
	return room
}

// instant is the same for when the client is fully reset.
func (w *waits) instant(at weir.Micros) *timestamppb.Timestamp {
	if at == 0 {
		return nil
	}
	w.at.Seconds, w.at.Nanos = int64(at/1e6), int32(at%1e6)*1e3
	return &w.at
}

// result is room for what one limit says, so that it takes one allocation.
type result struct {
	pb.LimitResult
	waits waits
}

// response is room for the usual answer, which has one or two results.
type response struct {
	pb.CheckResponse
	waits    waits
	results  [2]result
	pointers [2]*pb.LimitResult
}

// reasons has one for each of the engine's, which a test counts.
var reasons = [...]pb.Reason{
	engine.Limits:        pb.Reason_REASON_LIMITS,
	engine.Exempt:        pb.Reason_REASON_EXEMPT,
	engine.Blocked:       pb.Reason_REASON_BLOCKED,
	engine.Unavailable:   pb.Reason_REASON_UNAVAILABLE,
	engine.Overloaded:    pb.Reason_REASON_OVERLOADED,
	engine.UnknownClient: pb.Reason_REASON_UNKNOWN_CLIENT,
}

// answer says what a verdict does. Nothing in it is the verdict's, which is used again
// before the answer is on its way.
func answer(v *engine.Verdict) *pb.CheckResponse {
	r := new(response)
	a := &r.CheckResponse
	a.Allowed, a.Reason, a.Degraded, a.Version = v.Allowed, reasons[v.Reason], v.Degraded != nil, v.Version
	if v.Priority != rule.Normal {
		a.Priority = pb.Priority(v.Priority)
	}
	a.Delay = set(&r.waits.delay, v.Delay)
	said := v.Answer()
	a.Rule, a.Level, a.Limit, a.Remaining, a.ResetAt = said.Rule, said.Level, said.Limit, said.Remaining, r.waits.instant(said.ResetAt)
	a.ResetAfter, a.RetryAfter = set(&r.waits.reset, said.ResetAfter), set(&r.waits.retry, said.RetryAfter)
	a.Reserved = said.Reserved
	a.Status, a.Code, a.Message = int32(said.Status), int64(said.Code), valid(said.Message)
	if v.Hold != (weir.HoldID{}) {
		a.Hold, a.HoldExpiresAt = v.Hold.String(), timestamppb.New(v.HoldExpires.Time())
	}
	a.Unheld = v.Unheld
	if s := v.Speaker(); s != nil && s.Asked {
		a.Display = display(s)
	}
	a.Results = results(v, r.results[:], r.pointers[:])
	return a
}

// results says what each limit does, in the room that is given, or else in new one.
func results(v *engine.Verdict, room []result, pointers []*pb.LimitResult) []*pb.LimitResult {
	n := len(v.Results)
	if n == 0 {
		return nil
	}
	if n > len(room) {
		room, pointers = make([]result, n), make([]*pb.LimitResult, n)
	}
	for i := range n {
		describe(&v.Results[i], &room[i])
		pointers[i] = &room[i].LimitResult
	}
	return pointers[:n]
}

func describe(from *engine.Result, to *result) {
	r := &to.LimitResult
	r.Rule, r.Level, r.Key, r.Algorithm = from.Rule.ID, from.Level(), strings.Clone(valid(from.Key)), from.Compiled.Algorithm().String()
	r.Policy = from.Compiled.Policy()
	r.Allowed, r.Shadow, r.Asked, r.Penalty = from.Allowed, from.Shadow, from.Asked, from.Penalty
	r.Soft, r.Warning = from.Soft, int32(from.Warning())
	r.Local, r.Cost, r.Excess, r.Leave, r.Limit, r.Remaining, r.Reserved, r.Leased = from.Local, from.Cost, from.Excess, from.Leave, from.Limit, from.Remaining, from.Reserved, from.Leased
	if from.Asked {
		r.ResetAt = to.waits.instant(from.ResetAt)
	}
	r.ResetAfter, r.RetryAfter = set(&to.waits.reset, from.ResetAfter), set(&to.waits.retry, from.RetryAfter)
	r.Delay = set(&to.waits.delay, from.Delay)
	if o := from.Override; o != nil {
		r.Override = &pb.LimitOverride{Id: valid(o.ID), EndsAt: timestamppb.New(o.Ends)}
	}
	r.Display = display(from)
}

// display is the numbers of a rule that counts money as people read them; nil for other rules.
func display(r *engine.Result) *pb.Display {
	policy, _ := r.Rule.DisplayLimit(r.Compiled)
	if policy == "" {
		return nil
	}
	d := &pb.Display{Policy: policy, Cost: r.Rule.Display(r.Compiled, r.Cost)}
	if r.Asked {
		d.Limit, d.Remaining = r.Rule.Display(r.Compiled, r.Limit), r.Rule.Display(r.Compiled, r.Remaining)
		if r.Reserved != 0 {
			d.Reserved = r.Rule.Display(r.Compiled, r.Reserved)
		}
	}
	return d
}
