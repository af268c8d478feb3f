package grpcapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

func TestHealth(t *testing.T) {
	var ready atomic.Bool
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t), Ready: func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("it may take for ever")
		}
		if !ready.Load() {
			return errors.New("not yet")
		}
		return nil
	}}, HealthNames: []string{"ratelimit"}})
	check := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		a, err := s.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	watch, err := s.health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "weir.v1.Limiter"})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := watch.Recv(); err != nil || a.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v %v", a, err)
	}
	for _, up := range []bool{false, true, false, true} {
		ready.Store(up)
		want := healthpb.HealthCheckResponse_NOT_SERVING
		if up {
			want = healthpb.HealthCheckResponse_SERVING
		}
		for _, name := range []string{"", "weir.v1.Limiter", "weir.v1.Rules", "weir.v1.Keys", "ratelimit"} {
			if got := check(name); got != want {
				t.Errorf("%q is %v, want %v", name, got, want)
			}
		}
		list, err := s.health.List(t.Context(), &healthpb.HealthListRequest{})
		if err != nil || list.Statuses[""].GetStatus() != want || list.Statuses["weir.v1.Rules"].GetStatus() != want {
			t.Errorf("%v %v", list, err)
		}
	}
	_, err = s.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "shop.v1.Orders"})
	want(t, err, fault.NoService, "shop.v1.Orders")
	unknown, err := s.health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "shop.v1.Orders"})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := unknown.Recv(); err != nil || a.Status != healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Errorf("%v %v", a, err)
	}
	// The watcher has seen it go up, though it may have missed what was short, and down
	// again in the end.
	var seen []healthpb.HealthCheckResponse_ServingStatus
	for len(seen) == 0 || seen[len(seen)-1] != healthpb.HealthCheckResponse_SERVING {
		a, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, a.Status)
	}
	s.Shutdown()
	s.Shutdown()
	for {
		var a *healthpb.HealthCheckResponse
		if a, err = watch.Recv(); err != nil {
			break
		}
		seen = append(seen, a.Status)
	}
	want(t, err, fault.Stopping)
	if len(seen) < 2 || seen[len(seen)-1] != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the watcher saw %v", seen)
	}
	if got := check(""); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("after Shutdown it is %v", got)
	}
	if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{}); err != nil {
		t.Errorf("after Shutdown: %v", err)
	}
	s.grpc.GracefulStop() // and does not wait for the watchers
}

// Watchers of the health do not wait for the next poll.
func TestShutdownIsTold(t *testing.T) {
	s := newPipe(t, Options{})
	s.poll = time.Hour // before the first call
	watch, err := s.health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := watch.Recv(); err != nil || a.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v %v", a, err)
	}
	s.Shutdown()
	if a, err := watch.Recv(); err != nil || a.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v %v", a, err)
	}
	_, err = watch.Recv()
	want(t, err, fault.Stopping)
}

func TestReflection(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	names := s.described(t)
	for _, name := range []string{"grpc.health.v1.Health", "weir.v1.Clients", "weir.v1.Counters", "weir.v1.Keys", "weir.v1.Limiter", "weir.v1.Rules"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %v", name, names)
		}
	}
}

// described are the services that the server says it has.
func (s *stand) described(t *testing.T) []string {
	t.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(s.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	a, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range a.GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	stream.CloseSend()
	if _, err := stream.Recv(); err != io.EOF {
		t.Error(err)
	}
	return names
}

// The number of streams is bounded, whichever client opens them.
func TestStreamsAreBounded(t *testing.T) {
	s := newStand(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxStreams {
		w, err := s.health.Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	w, err := s.health.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Recv()
	want(t, err, fault.TooManyStreams)
	if _, err := s.limiter.Check(ctx, &pb.CheckRequest{}); err != nil {
		t.Error(err)
	}
}

// A panic ends the call, and not the server.
func TestPanic(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Ready: func(context.Context) error { panic("a mistake") }}})
	_, err := s.health.Check(t.Context(), &healthpb.HealthCheckRequest{})
	p := want(t, err, fault.InternalError)
	w, err := s.health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Recv()
	want(t, err, fault.InternalError)
	if log := s.log.String(); !strings.Contains(log, p.id) || !strings.Contains(log, "a mistake") || strings.Contains(p.text, "a mistake") {
		t.Errorf("%+v, and the log %s", p, log)
	}
	if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{}); err != nil {
		t.Error(err)
	}
}

func TestObserve(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := newPipe(t, Options{Service: manage.Service{Tokens: tokens(t)}, Observe: func(_ context.Context, method string, code codes.Code, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if took < 0 {
			t.Errorf("it took %v", took)
		}
		seen = append(seen, method+" "+code.String())
	}})
	s.limiter.Check(t.Context(), &pb.CheckRequest{})
	s.limiter.Check(t.Context(), &pb.CheckRequest{Cost: -1})
	s.admin.GetRules(t.Context(), &pb.GetRulesRequest{})
	s.conn.Invoke(t.Context(), "/weir.v1.Limiter/Unknown", &pb.CheckRequest{}, &pb.CheckResponse{})
	s.conn.Invoke(t.Context(), "/x.y.Z/Unknown", &pb.CheckRequest{}, &pb.CheckResponse{})
	ctx, cancel := context.WithCancel(t.Context())
	if w, err := s.health.Watch(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	} else if _, err := w.Recv(); err != nil {
		t.Error(err)
	}
	cancel()
	s.grpc.GracefulStop()
	mu.Lock()
	defer mu.Unlock()
	want := "/weir.v1.Limiter/Check OK,/weir.v1.Limiter/Check InvalidArgument,/weir.v1.Rules/GetRules Unauthenticated,/grpc.health.v1.Health/Watch Canceled"
	if got := strings.Join(seen, ","); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A call has a deadline before its message is read; a stream has none.
func TestHurry(t *testing.T) {
	s := newPipe(t, Options{})
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	late, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		ctx    context.Context
		method string
		most   time.Duration // 0 is none
	}{
		{t.Context(), "/weir.v1.Limiter/Check", maxCall},
		{late, "/weir.v1.Limiter/Check", maxCall},
		{soon, "/weir.v1.Limiter/Check", time.Second},
		{t.Context(), "/grpc.health.v1.Health/Watch", 0},
		{t.Context(), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", 0},
	} {
		ctx, err := s.hurry(c.ctx, &tap.Info{FullMethodName: c.method})
		if err != nil {
			t.Fatal(err)
		}
		deadline, ok := ctx.Deadline()
		if ok != (c.most > 0) || ok && time.Until(deadline) > c.most {
			t.Errorf("%s has until %v", c.method, deadline)
		}
	}
}

// A call that begins and sends nothing is ended.
func TestSilentClient(t *testing.T) {
	s := newPipe(t, Options{})
	s.longest = 50 * time.Millisecond // before the first call
	call, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, pb.Limiter_Check_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := call.RecvMsg(new(pb.CheckResponse)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}

func TestCodeOf(t *testing.T) {
	for want, err := range map[codes.Code]error{
		codes.OK: nil, codes.Canceled: context.Canceled, codes.NotFound: status.Error(codes.NotFound, ""),
		codes.Unknown: io.EOF, codes.Aborted: failed(fault.VersionConflict.Of("x"), ""),
	} {
		if got := codeOf(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
}
