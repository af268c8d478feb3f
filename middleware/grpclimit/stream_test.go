package grpclimit

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// end closes a stream and reads to its end.
func end(t *testing.T, s grpc.ClientStream) {
	t.Helper()
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
		t.Fatalf("the end is %v", err)
	}
}

// A stream is checked when it begins; its messages are not.
func TestStream(t *testing.T) {
	b := newBench(t, "rules: [{id: chat, match: {path: /test.v1.Echo/Chat}, key: ip, algorithm: fixed_window, limit: 1/1h}]", Options{})
	s := b.open(t, t.Context())
	for range 5 {
		if err := exchange(s); err != nil {
			t.Fatal(err)
		}
	}
	end(t, s)
	want := `x-ratelimit-limit: 1; x-ratelimit-remaining: 0; x-ratelimit-reset: 1767229200; ratelimit-policy: "chat";q=1;w=3600; ratelimit: "chat";r=0;t=3600`
	if header, err := s.Header(); err != nil || limits(header) != want || limits(s.Trailer()) != want {
		t.Errorf("header  %v %v\ntrailer %v\nwant    %s", limits(header), err, limits(s.Trailer()), want)
	}
	s = b.open(t, t.Context())
	if err := exchange(s); status.Code(err) != codes.ResourceExhausted || details(err) == "" {
		t.Errorf("%v", err)
	}
	if got := limits(s.Trailer()); got != want+"; retry-after: 3600" {
		t.Errorf("trailer %s", got)
	}
	if b.served.Load() != 5 {
		t.Errorf("%d were served", b.served.Load())
	}
}

// Of a stream whose messages count, the first one is paid for by the call.
func TestPerMessage(t *testing.T) {
	b := newBench(t, "rules: [{id: chat, key: ip, algorithm: fixed_window, limit: 5/1h}]", Options{PerMessage: true})
	s := b.open(t, t.Context())
	for range 3 {
		if err := exchange(s); err != nil {
			t.Fatal(err)
		}
	}
	end(t, s)
	if got := first(s.Trailer()["x-ratelimit-remaining"]); got != "2" {
		t.Errorf("after three messages %s of five are left", got)
	}
	if header, err := s.Header(); err != nil || first(header["x-ratelimit-remaining"]) != "4" {
		t.Errorf("at the start: %v %v", header, err)
	}
	// The next stream gets two, and then ends.
	s = b.open(t, t.Context())
	for range 2 {
		if err := exchange(s); err != nil {
			t.Fatal(err)
		}
	}
	err := exchange(s)
	if status.Code(err) != codes.ResourceExhausted || details(err) == "" || first(s.Trailer()["retry-after"]) != "3600" {
		t.Errorf("%v %v", err, s.Trailer())
	}
	if b.served.Load() != 5 {
		t.Errorf("%d were served", b.served.Load())
	}
}

// A handler that does not mind a denial ends all the same, and gets no more messages.
func TestPerMessageStubborn(t *testing.T) {
	b := newBench(t, "rules: [{id: chat, key: ip, algorithm: fixed_window, limit: 2/1h}]", Options{PerMessage: true})
	var got []error
	b.onChat = func(ss grpc.ServerStream) error {
		for range 4 {
			got = append(got, ss.RecvMsg(new(wrapperspb.StringValue)))
		}
		return nil
	}
	s := b.open(t, t.Context())
	for range 4 {
		if err := s.SendMsg(wrapperspb.String("hello")); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if err := s.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the client is told %v", err)
	}
	if len(got) != 4 || got[0] != nil || got[1] != nil || status.Code(got[2]) != codes.ResourceExhausted || got[3] != got[2] {
		t.Errorf("the handler is told %v", got)
	}
}

// The context of a stream is the call's, with all that was in it.
func TestStreamContext(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{})
	type note struct{}
	outer := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, &stream{ServerStream: ss, ctx: context.WithValue(ss.Context(), note{}, "kept"), limiter: b.Limiter})
	}
	b.onChat = func(ss grpc.ServerStream) error {
		if ss.Context().Value(note{}) != "kept" || ss.Context().Value(mark{b.engine}) == nil {
			return status.Error(codes.Internal, "the context is another")
		}
		return nil
	}
	b.serve(t, tcp, grpc.ChainStreamInterceptor(outer, b.Stream()))
	end(t, b.open(t, t.Context()))
}

// Many streams at once share a limit to the message.
func TestStreamsTogether(t *testing.T) {
	const streams, limit = 8, 100
	b := newBench(t, "rules: [{id: chat, key: ip, algorithm: sliding_log, limit: 100/1h}]", Options{PerMessage: true})
	var all sync.WaitGroup
	for range streams {
		s := b.open(t, t.Context())
		all.Go(func() {
			for {
				if err := exchange(s); err != nil {
					if status.Code(err) != codes.ResourceExhausted {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	all.Wait()
	if n := b.served.Load(); n != limit {
		t.Errorf("%d messages were served, want %d", n, limit)
	}
}
