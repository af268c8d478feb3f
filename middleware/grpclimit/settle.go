package grpclimit

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/rule"
)

// served is a call that is being served and whose cost is known afterwards.
type served struct {
	*engine.Hold
	by     *Limiter
	method string
	bytes  atomic.Int64 // a stream may be used after its handler has ended
}

// serve returns nil if there is nothing to be done after the call. Else the request of the
// call is needed until then.
func (l *Limiter) serve(c *call) *served {
	h := l.front.Serve(&c.request, &c.verdict)
	if h == nil {
		return nil
	}
	return &served{Hold: h, by: l, method: c.method}
}

// run calls the handler of a call, within the adaptive limit, and settles. Whoever gets the status of the call
// finds it settled.
func (l *Limiter) run(ctx context.Context, method string, p rule.Priority, s *served, handler func(context.Context) error) (err error) {
	limit, ended := l.front.Adaptive, false
	if s != nil {
		ctx = s.Context(ctx)
		defer func() { s.end(ctx, ended, err) }()
	}
	if limit != nil && !limit.Acquire(l.front.Now(), overload.Priority(p)) {
		ended = true
		return l.deny(ctx, method, translate(engine.DescribeOverload(new(engine.Verdict))))
	}
	if limit != nil {
		defer func() { limit.Release(l.front.Now(), overload.OutcomeOf(ctx, ended, httpStatus(status.Code(err)))) }()
	}
	err = handler(ctx)
	ended = true
	return err
}

// sent takes note of a message to the client.
func (s *served) sent(m any) {
	if m, ok := m.(proto.Message); ok && s != nil {
		s.bytes.Add(int64(proto.Size(m)))
	}
}

func (s *served) end(ctx context.Context, ended bool, err error) {
	resp := &rule.Response{Bytes: s.bytes.Load()}
	// The handler of a client that has left usually gives up, so its error says nothing of the call.
	if lost := err != nil && ctx.Err() != nil && resp.Bytes == 0; ended && !lost {
		st, ok := status.FromError(err)
		if !ok {
			st = status.FromContextError(err) // as the server does
		}
		resp.Status = httpStatus(st.Code())
	}
	var actual func(*rule.Response) engine.Used
	if s.by.options.Actual != nil {
		actual = func(resp *rule.Response) engine.Used { return s.by.options.Actual(ctx, s.method, resp) }
	}
	if err := s.End(resp, actual); err != nil {
		s.by.front.Tell(front.NotUsed, "method", s.method, "error", err.Error())
	}
}

// httpStatuses are those that google.rpc.Code names for the codes of gRPC.
var httpStatuses = [...]int{
	codes.OK: 200, codes.Canceled: 499, codes.Unknown: 500, codes.InvalidArgument: 400,
	codes.DeadlineExceeded: 504, codes.NotFound: 404, codes.AlreadyExists: 409,
	codes.PermissionDenied: 403, codes.ResourceExhausted: 429, codes.FailedPrecondition: 400,
	codes.Aborted: 409, codes.OutOfRange: 400, codes.Unimplemented: 501, codes.Internal: 500,
	codes.Unavailable: 503, codes.DataLoss: 500, codes.Unauthenticated: 401,
}

// httpStatus is how rules know a code.
func httpStatus(c codes.Code) int {
	if int(c) >= len(httpStatuses) {
		return 500
	}
	return httpStatuses[c]
}
