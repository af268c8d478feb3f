// Package grpclimit limits the calls of a gRPC server.
//
//	limit, err := grpclimit.New(engine, grpclimit.Options{})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limit.Unary()),
//		grpc.ChainStreamInterceptor(limit.Stream()),
//	)
//
// For the rules, a call is a POST of its full method, as in /shop.v1.Orders/Create, and
// its metadata are headers. An allowed call gets metadata about the limit with the
// fewest units left. A denied call ends with a status that names the limit and the time
// to wait: see [Denial]. A call that a rule shapes is delayed until its turn, and frees
// its turn if the client cancels.
//
// A stream is checked when it begins, and with Options.PerMessage at each message, too.
//
// Rules can settle by the response, and so can your program with Options.Actual: what a call
// may cost is reserved first, and settled when its handler has ended. For rules, the status
// is the HTTP status of the code, such as 401 for Unauthenticated.
//
// Rules can limit how many calls are in flight: those whose handler has not ended yet. A message
// of a stream takes no further place.
//
// The client's address is that of the connection. Name the proxies in front of your
// server in Options.TrustedProxies; otherwise all calls seem to come from them.
//
// Each likely mistake in the configuration is logged once, with a code and a remedy;
// docs/reference/middleware.md explains the codes.
package grpclimit

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/rule"
)

// Limiter limits calls. It is safe for concurrent use, and several servers can share
// it.
type Limiter struct {
	options Options
	engine  *engine.Engine
	front   *front.Front
}

// mark marks the context of a call that an engine has checked.
type mark struct{ by *engine.Engine }

// ServerOptions returns both interceptors, for a server that has no others:
//
//	server := grpc.NewServer(limit.ServerOptions()...)
func (l *Limiter) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(l.Unary()), grpc.ChainStreamInterceptor(l.Stream())}
}

// Unary returns an interceptor for unary calls.
func (l *Limiter) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if l.passes(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		md, s, p, err := l.allow(ctx, info.FullMethod)
		if err != nil {
			_ = grpc.SetTrailer(ctx, md)
			return nil, err
		}
		// They fail only where there is no client to read them.
		_ = grpc.SetHeader(ctx, md)
		_ = grpc.SetTrailer(ctx, md)
		ctx = context.WithValue(ctx, mark{l.engine}, true)
		if s == nil && l.front.Adaptive == nil {
			return handler(ctx, req)
		}
		var out any
		err = l.run(ctx, info.FullMethod, p, s, func(ctx context.Context) (err error) {
			if out, err = handler(ctx, req); err == nil {
				s.sent(out)
			}
			return err
		})
		return out, err
	}
}

// passes reports whether a call is none of the limiter's business, or has paid already.
func (l *Limiter) passes(ctx context.Context, method string) bool {
	if l.options.Skip != nil && l.options.Skip(ctx, method) {
		return true
	}
	if ctx.Value(mark{l.engine}) != nil {
		l.front.Tell(front.MountedTwice, "method", method)
		return true
	}
	return false
}

// allow also returns what is to be done after an allowed call, or nil, and its priority.
func (l *Limiter) allow(ctx context.Context, method string) (metadata.MD, *served, rule.Priority, error) {
	c := calls.Get().(*call)
	l.readCall(ctx, c, method)
	md, err := l.judge(ctx, c, l.front.Reserve)
	p := c.verdict.Priority
	if err == nil {
		if s := l.serve(c); s != nil {
			return md, s, p, nil // which needs the call
		}
	}
	c.release()
	return md, nil, p, err
}

// decide is a way to ask a gate: for calls, Reserve of the front; for messages, which have no answer, Continue.
type decide func(context.Context, *rule.Request, *engine.Verdict, *engine.Denial) (bool, error)

// judge charges a call or one of its messages, and delays it until its turn. It returns
// metadata about the limits, and an error if the call must end.
func (l *Limiter) judge(ctx context.Context, c *call, decide decide) (metadata.MD, error) {
	var d engine.Denial
	ok, err := false, c.wrong
	if err != nil {
		d = engine.DescribeError(new(engine.Verdict), err)
	} else if ok, err = decide(ctx, &c.request, &c.verdict, &d); ok {
		return fieldsOf(&c.verdict, c.verdict.Delay, 0, l.options.Headers), nil
	}
	_, invalid := errors.AsType[*weir.InvalidError](err)
	switch {
	case invalid:
		l.front.Tell(front.NotChecked, "method", c.method, "error", err.Error())
	case err != nil && ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err() // the client has disconnected
	}
	denial := translate(d)
	return fieldsOf(d.Verdict, 0, denial.Wait(), l.options.Headers), l.deny(ctx, c.method, denial)
}

// deny is the error of a call that may not go on.
func (l *Limiter) deny(ctx context.Context, method string, d *Denial) error {
	if l.options.Deny != nil {
		if err := l.options.Deny(ctx, method, d); err != nil {
			return err
		}
	}
	return d.Err()
}

// fieldsOf are the metadata that a verdict of some time ago gives rise to, of a call
// that has to wait if it was denied. They mean what the headers of HTTP mean.
func fieldsOf(v *engine.Verdict, age, wait time.Duration, families Headers) metadata.MD {
	md := make(metadata.MD)
	front.Write(md, &front.GRPC, v, age, wait, int(families))
	return md
}

// Delayed returns how many calls and messages are delayed, or wait for a place, now.
func (l *Limiter) Delayed() int { return l.front.Gate.Delayed() }

// Adaptive is a limit of the calls in flight. It adapts between Min and Max to how many calls
// the handlers can answer at the same time. Further calls get Unavailable, first those of low
// priority. Only calls that the rules allow count, so denied ones are charged nevertheless. A
// stream counts until its handler has returned.
type Adaptive struct{ Min, Max int }

// AdaptiveLimit returns the state of Options.Adaptive. Observers of the engine that are an
// [engine.AdaptiveObserver], such as metrics, show it, too.
func (l *Limiter) AdaptiveLimit() engine.AdaptiveLimit { return l.front.AdaptiveLimit() }

// Protection returns the state of Options.Protect. Observers of the engine that are an
// [engine.ProtectionObserver], such as metrics, show it, too.
func (l *Limiter) Protection() engine.Protection { return l.front.Gate.Protection() }
