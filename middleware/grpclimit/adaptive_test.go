package grpclimit

import (
	"context"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A call or a stream that finds no place gets Unavailable, and a place is free again when the
// handler has ended.
func TestAdaptive(t *testing.T) {
	b := newBench(t, "rules: [{id: all, key: ip, limit: 1000/1s}]", Options{Adaptive: Adaptive{Min: 1, Max: 1}})
	call := func() error {
		return b.client.Invoke(t.Context(), say, wrapperspb.String("x"), new(wrapperspb.StringValue))
	}
	begin := make(chan struct{})
	end := make(chan struct{})
	b.onCall = func(context.Context) error { begin <- struct{}{}; <-end; return nil }
	b.onChat = func(grpc.ServerStream) error { begin <- struct{}{}; <-end; return nil }
	streamed := func() error {
		s, err := b.client.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, chat)
		if err != nil {
			return err
		}
		return s.RecvMsg(new(wrapperspb.StringValue))
	}
	for _, first := range []func() error{call, streamed} {
		done := make(chan error, 1)
		go func() { done <- first() }()
		select {
		case <-begin:
		case err := <-done:
			t.Fatal(err)
		}
		for _, second := range []func() error{call, streamed} {
			st := status.Convert(second())
			if st.Code() != codes.Unavailable || st.Message() != "The server is overloaded; try again soon." {
				t.Errorf("%v", st)
			}
			if info, ok := st.Details()[0].(*errdetails.ErrorInfo); !ok || info.Reason != ReducedCapacity {
				t.Errorf("%v", st.Details())
			}
		}
		end <- struct{}{}
		<-done
		if s := b.AdaptiveLimit(); s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	}
	if s := b.AdaptiveLimit(); s.Denied != 4 {
		t.Errorf("%+v", s)
	}
	if _, err := New(b.engine, Options{Adaptive: Adaptive{Max: 5}}); err == nil || err.Error() != "grpclimit: Adaptive: the minimum is 0; it must be at least 1, for example 5" {
		t.Error(err)
	}
}
