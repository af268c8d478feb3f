package grpclimit

import (
	"context"
	"errors"
	"runtime"
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

// A call waits for the place of another, and one that is cancelled waits no longer.
func TestWait(t *testing.T) {
	b := newSettling(t, "rules: [{id: api, key: ip, concurrency: 1, wait: 1m}]", Options{})
	begun, proceed := make(chan struct{}), make(chan struct{})
	b.onCall = func(context.Context) error {
		begun <- struct{}{}
		<-proceed
		return nil
	}
	first, leaving, last := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	waiting := func(n int) {
		t.Helper()
		for b.Delayed() != n {
			select {
			case err := <-leaving:
				close(proceed)
				t.Fatalf("a call does not wait: %v", err)
			case err := <-last:
				close(proceed)
				t.Fatalf("a call does not wait: %v", err)
			default:
				runtime.Gosched()
			}
		}
	}
	go func() { first <- b.call(t.Context()).err }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { leaving <- b.call(ctx).err }()
	waiting(1)
	go func() { last <- b.call(t.Context()).err }()
	waiting(2)
	cancel()
	if err := <-leaving; status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	waiting(1)
	proceed <- struct{}{}
	<-begun
	proceed <- struct{}{}
	if err := errors.Join(<-first, <-last); err != nil || b.Delayed() != 0 {
		t.Errorf("%v, %d wait", err, b.Delayed())
	}
}
