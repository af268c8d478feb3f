package grpclimit

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A call has its place until its handler has ended, however it ends. The messages of a stream
// take no further places.
func TestInFlight(t *testing.T) {
	for _, rules := range []string{
		"rules: [{id: api, key: ip, concurrency: 1}]",
		"rules: [{id: api, key: ip, concurrency: 1}, {id: failed, key: ip, limit: 100/1h, count: {status: 401}}]",
	} {
		b := newSettling(t, rules, Options{PerMessage: true})
		inside := int64(0)
		look := func() { inside = b.used(t, "api")[0] }
		for name, call := range map[string]func() error{
			"call": func() error {
				b.onCall = func(ctx context.Context) error {
					look()
					if a := b.call(ctx); status.Code(a.err) != codes.ResourceExhausted {
						t.Errorf("a call within a call: %v", a.err)
					}
					return nil
				}
				return b.call(t.Context()).err
			},
			"error": func() error {
				b.onCall = func(context.Context) error { look(); return errors.New("no") }
				return b.call(t.Context()).err
			},
			"panic": func() error {
				b.onCall = func(context.Context) error { look(); panic("no") }
				return b.call(t.Context()).err
			},
			"stream": func() error {
				b.onChat = func(ss grpc.ServerStream) error { look(); return b.echo(ss) }
				return b.chatted(t)
			},
			"stream that panics": func() error {
				b.onChat = func(grpc.ServerStream) error { look(); panic("no") }
				return b.chatted(t)
			},
		} {
			inside = 0
			err := call()
			if failed := err != nil; failed != (name == "error" || name == "panic" || name == "stream that panics") {
				t.Errorf("%s: %v", name, err)
			}
			if after := b.used(t, "api")[0]; inside != 1 || after != 0 {
				t.Errorf("%s: %d were in flight, and %d afterwards; want 1 and 0", name, inside, after)
			}
		}
	}
}
