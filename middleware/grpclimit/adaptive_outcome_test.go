package grpclimit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/testkit/testoverload"
)

// The limiter learns how each call ended. A client that leaves says nothing about the handlers, but
// a deadline that passes does.
func TestAdaptiveOutcome(t *testing.T) {
	for name, want := range map[string]string{
		"ok":          "success",
		"internal":    "success",
		"unavailable": "failure",
		"late":        "failure", // what it asked was late
		"deadline":    "failure",
		"panic":       "failure",
		"cancel":      "ignored",
		"leave":       "ignored",
		"denied":      "ignored",
	} {
		t.Run(name, func(t *testing.T) { testOutcome(t, name, want) })
	}
}

func testOutcome(t *testing.T, name, want string) {
	b := newBench(t, "rules: [{id: few, match: {path: "+chat+"}, key: ip, limit: 1/1h}]", Options{Adaptive: Adaptive{Min: 1, Max: 1000}})
	var how atomic.Value
	leave := make(chan struct{}, 1)
	b.onCall = func(ctx context.Context) error {
		switch how.Load() {
		case "internal":
			return status.Error(codes.Internal, "")
		case "unavailable":
			return status.Error(codes.Unavailable, "")
		case "panic":
			panic("a mistake")
		case "late":
			return status.Error(codes.DeadlineExceeded, "")
		case "deadline":
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		case "cancel":
			leave <- struct{}{}
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		case "leave":
			leave <- struct{}{}
			<-ctx.Done()
			return status.Error(codes.Unavailable, "")
		}
		return nil
	}
	once := func(name string) {
		how.Store(name)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		switch name {
		case "deadline":
			// One of the server. When that of a client passes, the client leaves, too, and either
			// may be seen first.
			ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			b.Unary()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: say}, b.say)
			return
		case "panic": // as if an interceptor before this one recovered
			defer func() { recover() }()
			b.Unary()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: say}, b.say)
			return
		case "cancel", "leave":
			go func() { <-leave; cancel() }()
		case "denied":
			s := b.open(t, ctx)
			if err := s.CloseSend(); err != nil {
				t.Error(err)
			}
			exchange(s)
			return
		}
		b.call(ctx)
	}
	send := func(name string) func() {
		return func() {
			for before := b.served.Load(); ; {
				once(name)
				for b.AdaptiveLimit().InFlight > 0 {
					time.Sleep(time.Millisecond) // its handler may still have to notice
				}
				if b.served.Load() > before || name == "denied" {
					return // otherwise the deadline came before the handler
				}
			}
		}
	}
	if name == "denied" {
		once(name) // which is allowed
	}
	if got := testoverload.Outcome(func() int { return b.AdaptiveLimit().Limit }, send("unavailable"), send(name)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
