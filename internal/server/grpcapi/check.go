package grpcapi

import (
	"context"
	"fmt"
	"sync"

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

// read takes in what a client says, if it makes sense.
func (q *question) read(req *pb.CheckRequest) *manage.FieldError {
	priority := req.GetPriority()
	if _, known := pb.Priority_name[int32(priority)]; !known {
		return &manage.FieldError{Field: "priority", Detail: fmt.Sprintf("priority: %d is unknown; send critical, high, normal or low, or leave it out.", priority)}
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

// asking is a method of the engine.
type asking func(context.Context, *rule.Request, *engine.Verdict) error

func (l limiter) judge(ctx context.Context, req *pb.CheckRequest, right trust.Rights, ask asking) (*pb.CheckResponse, error) {
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
func (q *question) put(ctx context.Context, req *pb.CheckRequest, k *manage.Checker, right trust.Rights, ask asking) error {
	if bad := q.read(req); bad != nil {
		return bad
	}
	if err := k.Permit(right, &q.said.Request); err != nil {
		return err
	}
	return k.Judged(right, ask(ctx, &q.said.Request, &q.verdict))
}

// CheckMany implements pb.LimiterServer. All requests are validated before the first is
// charged.
func (l limiter) CheckMany(ctx context.Context, req *pb.CheckManyRequest) (*pb.CheckManyResponse, error) {
	k, err := l.s.checker(ctx)
	if err != nil {
		return nil, failed(err, "")
	}
	if n := len(req.GetRequests()); n > MaxChecks {
		return nil, failed(fault.BadField.Of("requests: %d requests exceed the maximum of %d; send several calls.", n, MaxChecks).In("requests"), "")
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
