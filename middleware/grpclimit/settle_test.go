package grpclimit

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/expression"
	"github.com/weirhq/weir/store/memory"
)

const settling = `
rules:
  - {id: all, key: ip, algorithm: sliding_log, limit: 1000/1h}
  - {id: failed, key: ip, algorithm: sliding_log, limit: 1000/1h, count: {status: [401, 5xx]}}
  - {id: size, key: ip, algorithm: sliding_log, limit: 1000/1h, unit: bytes, cost: {estimate: "100", actual: "response.size"}}
`

// newSettling is a bench on a store that can hold units. A handler that panics is caught
// outside the limiter, as by a recovery interceptor.
func newSettling(t testing.TB, rules string, o Options) *bench {
	t.Helper()
	b := new(bench)
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: stands}), Clock: stands})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.Install(tableOf(t, rules), 1)
	if b.Limiter, err = New(e, o); err != nil {
		t.Fatal(err)
	}
	caught := func(err *error) {
		if recover() != nil {
			*err = status.Error(codes.Internal, "panicked")
		}
	}
	b.serve(t, tcp,
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
			defer caught(&err)
			return next(ctx, req)
		}, b.Unary()),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
			defer caught(&err)
			return next(srv, ss)
		}, b.Stream()))
	return b
}

// used is how much of its rules' limits the client has used.
func (b *bench) used(t testing.TB, rules ...string) (all [3]int64) {
	t.Helper()
	for i, id := range rules {
		var v engine.Verdict
		if _, err := b.engine.Standing(t.Context(), id, "ip:127.0.0.1", "", &v); err != nil {
			t.Fatal(err)
		}
		all[i] = v.Results[0].Limit - v.Results[0].Remaining
	}
	return all
}

// chatted has a stream of three messages, and returns its end.
func (b *bench) chatted(t testing.TB) error {
	t.Helper()
	s := b.open(t, t.Context())
	for range 3 {
		if err := exchange(s); err != nil {
			return err
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// A call counts by the status of its code and by the size of its messages, which are 7 bytes.
func TestSettle(t *testing.T) {
	ends := func(err error) func(*bench) {
		return func(b *bench) { b.onCall = func(context.Context) error { return err } }
	}
	for name, test := range map[string]struct {
		set    func(*bench)
		stream bool
		used   [3]int64 // all, failed, size
	}{
		"good":            {func(*bench) {}, false, [3]int64{1, 0, 7}},
		"not logged in":   {ends(status.Error(codes.Unauthenticated, "no")), false, [3]int64{1, 1, 0}},
		"not found":       {ends(status.Error(codes.NotFound, "no")), false, [3]int64{1, 0, 0}},
		"any error":       {ends(errors.New("no")), false, [3]int64{1, 1, 0}},
		"too late":        {ends(context.DeadlineExceeded), false, [3]int64{1, 1, 0}},
		"cancelled":       {ends(context.Canceled), false, [3]int64{1, 0, 0}},
		"code of its own": {ends(status.Error(77, "no")), false, [3]int64{1, 1, 0}},
		"panic":           {func(b *bench) { b.onCall = func(context.Context) error { panic("no") } }, false, [3]int64{1, 1, 100}},
		"the handler knows it": {func(b *bench) {
			b.onCall = func(ctx context.Context) error {
				_, err := engine.HoldOf(ctx).Settle(ctx, engine.Units(5))
				return err
			}
		}, false, [3]int64{1, 5, 5}},
		"stream": {func(*bench) {}, true, [3]int64{1, 0, 21}},
		"failed stream": {func(b *bench) {
			b.onChat = func(ss grpc.ServerStream) error {
				_ = ss.SendMsg(wrapperspb.String("hello"))
				return status.Error(codes.Unavailable, "no")
			}
		}, true, [3]int64{1, 1, 7}},
		"stream that panics": {func(b *bench) { b.onChat = func(grpc.ServerStream) error { panic("no") } }, true, [3]int64{1, 1, 100}},
		"stream whose handler knows it": {func(b *bench) {
			b.onChat = func(ss grpc.ServerStream) error {
				_, err := engine.HoldOf(ss.Context()).Settle(ss.Context(), engine.Units(5))
				return err
			}
		}, true, [3]int64{1, 5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSettling(t, settling, Options{})
			test.set(b)
			if test.stream {
				_ = b.chatted(t)
			} else {
				b.call(t.Context())
			}
			if got := b.used(t, "all", "failed", "size"); got != test.used {
				t.Errorf("used %d; want %d", got, test.used)
			}
		})
	}
}

// A client that leaves before the answer pays what was reserved, whatever the handler makes of it.
func TestClientLeaves(t *testing.T) {
	b := newSettling(t, settling, Options{})
	ctx, leave := context.WithCancel(peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}))
	_, err := b.Unary()(ctx, wrapperspb.String("hello"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(ctx context.Context, _ any) (any, error) {
		leave()
		return nil, status.FromContextError(ctx.Err()).Err()
	})
	if got, want := b.used(t, "all", "failed", "size"), [3]int64{1, 1, 100}; got != want || status.Code(err) != codes.Canceled {
		t.Errorf("used %d, want %d; %v", got, want, err)
	}
}

// What the program knows of a call is charged, except where rules know it themselves. With
// PerMessage, further messages stay charged as estimated: they have no answer.
func TestActual(t *testing.T) {
	const rules = `
rules:
  - {id: all, key: ip, algorithm: sliding_log, limit: 1000/1h}
  - {id: bytes, key: ip, algorithm: sliding_log, limit: 1000/1h, unit: bytes}
  - {id: failed, key: ip, algorithm: sliding_log, limit: 1000/1h, count: {status: [401]}}
`
	for name, test := range map[string]struct {
		perMessage, stream bool
		used               [3]int64 // all, bytes, failed
	}{
		"call":        {false, false, [3]int64{10, 207, 0}},
		"stream":      {false, true, [3]int64{10, 221, 0}},
		"per message": {true, true, [3]int64{30, 321, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSettling(t, rules, Options{
				PerMessage: test.perMessage,
				Cost:       func(context.Context, string) int64 { return 10 },
				Costs:      func(context.Context, string) map[string]int64 { return map[string]int64{"bytes": 50} },
				Actual: func(ctx context.Context, method string, resp *rule.Response) engine.Used {
					if engine.HoldOf(ctx) == nil || method != say && method != chat || resp.Duration < 0 {
						t.Errorf("%s, %v", method, resp)
					}
					return engine.ByUnit(map[string]int64{"bytes": resp.Bytes + int64(resp.Status)})
				},
			})
			if test.stream {
				if err := b.chatted(t); err != nil {
					t.Fatal(err)
				}
			} else if a := b.call(t.Context()); a.err != nil {
				t.Fatal(a.err)
			}
			if got := b.used(t, "all", "bytes", "failed"); got != test.used {
				t.Errorf("used %d; want %d", got, test.used)
			}
		})
	}
}

// A unit that no rule has is an error of the program: a call with such a cost fails, and such a
// result of Actual is not used. Both are logged.
func TestUnknownUnit(t *testing.T) {
	var log strings.Builder
	costs := map[string]int64{"byts": 50}
	b := newSettling(t, "rules: [{id: bytes, key: ip, algorithm: sliding_log, limit: 1000/1h, unit: bytes}]", Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Costs:  func(context.Context, string) map[string]int64 { return costs },
		Actual: func(context.Context, string, *rule.Response) engine.Used { return engine.ByUnit{"byts": 7} },
	})
	if a := b.call(t.Context()); status.Code(a.err) != codes.InvalidArgument || !strings.Contains(log.String(), "there are bytes") {
		t.Errorf("%v: %s", a.err, &log)
	}
	costs = map[string]int64{"bytes": 50}
	if a := b.call(t.Context()); a.err != nil || b.used(t, "bytes", "bytes", "bytes")[0] != 50 || !strings.Contains(log.String(), "G006") {
		t.Errorf("%v: %s", a.err, &log)
	}
}
