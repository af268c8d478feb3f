package grpclimit

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/rule"
)

// Limiter limits calls. It is safe for concurrent use, and may serve any number of
// servers.
type Limiter struct {
	options Options
	engine  *engine.Engine
	clients *clientip.Resolver
	held    atomic.Int64
	told    [codesOfMistakes]atomic.Bool
}

// mark is, in a call's context, that an engine has judged it.
type mark struct{ by *engine.Engine }

// Unary returns an interceptor that lets pass what the engine admits.
func (l *Limiter) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if l.passes(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		md, err := l.admit(ctx, info.FullMethod)
		if err != nil {
			_ = grpc.SetTrailer(ctx, md)
			return nil, err
		}
		// They fail only where there is no client to read them.
		_ = grpc.SetHeader(ctx, md)
		_ = grpc.SetTrailer(ctx, md)
		return handler(context.WithValue(ctx, mark{l.engine}, true), req)
	}
}

// passes reports whether a call is none of the limiter's business, or has paid already.
func (l *Limiter) passes(ctx context.Context, method string) bool {
	if l.options.Skip != nil && l.options.Skip(ctx, method) {
		return true
	}
	if ctx.Value(mark{l.engine}) != nil {
		l.tell(mountedTwice, "method", method)
		return true
	}
	return false
}

func (l *Limiter) admit(ctx context.Context, method string) (metadata.MD, error) {
	c := calls.Get().(*call)
	defer c.release()
	l.read(ctx, c, method)
	return l.judge(ctx, c)
}

// judge charges a call, or a message of it, and holds it if it has to wait for its
// turn. It returns what to tell the client about its limits, and an error if the call
// is over.
func (l *Limiter) judge(ctx context.Context, c *call) (metadata.MD, error) {
	v := &c.verdict
	if err := l.engine.Check(ctx, &c.request, v); err != nil {
		return l.fail(ctx, c, err)
	}
	if !v.Allowed {
		return l.deny(ctx, c, Describe(v))
	}
	if v.Delay > 0 {
		d, err := l.hold(ctx, v)
		switch {
		case err != nil:
			return nil, err
		case d != nil:
			return l.deny(ctx, c, d)
		}
	}
	return fieldsOf(v, v.Delay, 0, l.options.Headers), nil
}

// deny ends a call that may not go on.
func (l *Limiter) deny(ctx context.Context, c *call, d *Denial) (metadata.MD, error) {
	md := fieldsOf(d.Verdict, 0, d.RetryAfter, l.options.Headers)
	if l.options.Deny != nil {
		if err := l.options.Deny(ctx, c.method, d); err != nil {
			return md, err
		}
	}
	return md, d.Err()
}

// fail ends a call that the engine could not judge. The store's trouble is not among the
// reasons: for that, each rule has said what to do.
func (l *Limiter) fail(ctx context.Context, c *call, err error) (metadata.MD, error) {
	var invalid *weir.InvalidError
	var values *rule.ValuesError
	switch {
	case errors.As(err, &values):
		return l.deny(ctx, c, ambiguous(&c.verdict, values.What))
	case errors.As(err, &invalid):
		l.tell(notJudged, "method", c.method, "error", err.Error())
		return l.deny(ctx, c, senseless(&c.verdict))
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err() // nobody is there to read more
	}
	return l.deny(ctx, c, unavailable(&c.verdict))
}
