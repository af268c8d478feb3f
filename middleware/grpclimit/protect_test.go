package grpclimit

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// This process uses more than nothing, so calls of low priority are shed.
func TestProtect(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what a process uses")
	}
	b := newBench(t, "rules: [{id: all, key: ip, limit: 100000000/1h, priority: low}]", Options{Protect: engine.Protect{CPU: 1e-9}, Logger: slog.New(slog.DiscardHandler)})
	shed := uint64(0)
	for began := time.Now(); shed < 5; {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing is shed")
		}
		err := b.client.Invoke(t.Context(), say, wrapperspb.String("x"), new(wrapperspb.StringValue))
		if err == nil {
			continue
		}
		shed++
		st := status.Convert(err)
		if st.Code() != codes.Unavailable || st.Message() != "The server is overloaded; try again soon." {
			t.Fatalf("%v", st)
		}
		if info, ok := st.Details()[0].(*errdetails.ErrorInfo); !ok || info.Reason != ReducedCapacity {
			t.Fatalf("%v", st.Details())
		}
	}
	if p := b.Protection(); p.Shed[rule.Low] != shed {
		t.Errorf("%+v, but %d were shed", p, shed)
	}
	if _, err := New(b.engine, Options{Protect: engine.Protect{Memory: -1}}); err == nil || err.Error() != "grpclimit: Protect: Memory is -1; it must be a share from 0 to 1, for example 0.85, or 0 for no limit" {
		t.Error(err)
	}
}

// Of four places, one is left for critical calls, if some come.
func TestAdaptiveByPriority(t *testing.T) {
	b := newBench(t, `rules:
  - {id: low, match: {path: `+say+`}, key: ip, limit: 1000000/1s, priority: low}
  - {id: critical, match: {path: `+chat+`}, key: ip, limit: 1000000/1s, priority: critical}`, Options{Adaptive: Adaptive{Min: 4, Max: 4}})
	call := func() error {
		return b.client.Invoke(t.Context(), say, wrapperspb.String("x"), new(wrapperspb.StringValue))
	}
	b.onChat = func(grpc.ServerStream) error { return nil }
	stream := func() error {
		s, err := b.client.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, chat)
		if err != nil {
			return err
		}
		if err = s.RecvMsg(new(wrapperspb.StringValue)); err == io.EOF {
			return nil
		}
		return err
	}
	for i := range 600 {
		send := call
		if i%20 == 0 {
			send = stream
		}
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	begin, end := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	b.onCall = func(context.Context) error {
		if calls.Add(1) <= 3 {
			begin <- struct{}{}
			<-end
		}
		return nil
	}
	done := make(chan error, 3)
	for range 3 {
		go func() { done <- call() }()
		<-begin
	}
	if err := call(); status.Code(err) != codes.Unavailable {
		t.Errorf("low: %v", err)
	}
	if err := stream(); err != nil {
		t.Errorf("critical: %v", err)
	}
	close(end)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
