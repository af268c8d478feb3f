package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

var item = &Request{User: "u", Path: "/api/x"}

// The service is killed under load, and comes back: no call gets an error, all are
// answered by OnFailure, and the client uses the service again when it is back.
func TestKilledAndRestarted(t *testing.T) {
	for _, failure := range []Failure{Open, Closed} {
		t.Run(fmt.Sprint("failure ", failure), func(t *testing.T) {
			s := startService(t, &service{})
			var log record
			c := connect(t, s, Options{OnFailure: failure, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if v, err := c.Check(t.Context(), item); err != nil || v.Degraded || v.Remaining != 999 {
				t.Fatalf("%+v %v", v, err)
			}
			stop := make(chan bool)
			var load sync.WaitGroup
			for range 4 {
				load.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						v, err := c.Peek(t.Context(), item)
						if err != nil {
							t.Error(err)
							return
						}
						if v.Degraded && v.Allowed != (failure == Open) || !v.Degraded && !v.Allowed {
							t.Errorf("%+v", v)
							return
						}
					}
				})
			}
			for range 2 {
				s.kill()
				v := until(t, c, item, func(v *Verdict) bool { return v.Degraded })
				if v.Allowed != (failure == Open) || v.Reason != Unavailable || v.Err == nil {
					t.Errorf("%+v", v)
				}
				if failure == Closed && (v.Status != http.StatusServiceUnavailable || v.RetryAfter != outage || v.Message == "") {
					t.Errorf("%+v", v)
				}
				s.start()
				until(t, c, item, func(v *Verdict) bool { return !v.Degraded && v.Rule == "api" })
			}
			close(stop)
			load.Wait()
			// What was under way when the service came back may have failed since.
			until(t, c, item, func(v *Verdict) bool { return !v.Degraded })
			if text := log.String(); strings.Count(text, "weir is unavailable") < 1 || strings.Count(text, "weir is unavailable") != strings.Count(text, "weir is available again") {
				t.Errorf("the log says %s", text)
			}
			if vs, err := c.CheckMany(t.Context(), []*Request{item, item}); err != nil || vs[1].Degraded {
				t.Errorf("%v %v", vs, err)
			}
			s.kill()
			if vs, err := c.CheckMany(t.Context(), []*Request{item, item}); err != nil || len(vs) != 2 || !vs[0].Degraded || !vs[1].Degraded {
				t.Errorf("%v %v", vs, err)
			}
		})
	}
}

// hanging is a service that takes calls and does not answer.
type hanging struct {
	pb.UnimplementedLimiterServer
	checks, peeks atomic.Int64
	well          atomic.Bool
	early         atomic.Bool // it says that the deadline has passed before it has
	entered       chan bool   // is told of calls that hang, if it is there
}

func (h *hanging) Check(ctx context.Context, _ *pb.CheckRequest) (*pb.CheckResponse, error) {
	h.checks.Add(1)
	return h.answer(ctx)
}

func (h *hanging) Peek(ctx context.Context, _ *pb.CheckRequest) (*pb.CheckResponse, error) {
	h.peeks.Add(1)
	return h.answer(ctx)
}

func (h *hanging) answer(ctx context.Context) (*pb.CheckResponse, error) {
	if h.well.Load() {
		return &pb.CheckResponse{Allowed: true, Rule: "well"}, nil
	}
	if h.early.Load() {
		return nil, status.Error(codes.DeadlineExceeded, "no time left")
	}
	if h.entered != nil {
		h.entered <- true
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// Three calls wait in vain, and then none. No call is sent twice, and what is sent to try
// charges nothing.
func TestHanging(t *testing.T) {
	t.Parallel() // it mostly waits
	const timeout = 5 * time.Second
	h := new(hanging)
	c := connect(t, startService(t, &service{limiter: h}), Options{Timeout: timeout})
	begin := time.Now()
	for i := range 100 {
		start := time.Now()
		v, err := c.Check(t.Context(), item)
		if err != nil || !v.Degraded || !v.Allowed || status.Code(errors.Unwrap(v.Err)) != codes.DeadlineExceeded {
			t.Fatalf("call %d: %+v %v", i, v, err)
		}
		if took := time.Since(start); i < maxFailures && took < timeout {
			t.Errorf("call %d took %v", i, took)
		}
	}
	if took := time.Since(begin); took > 50*timeout {
		t.Errorf("100 calls took %v; they would take %v if each waited", took, 100*timeout)
	}
	if n := h.checks.Load(); n != maxFailures {
		t.Errorf("%d checks were sent, want %d", n, maxFailures)
	}
	h.well.Store(true)
	until(t, c, item, func(v *Verdict) bool { return v.Rule == "well" })
	if h.checks.Load() != maxFailures+1 || h.peeks.Load() == 0 {
		t.Errorf("%d checks and %d peeks were sent", h.checks.Load(), h.peeks.Load())
	}
	// One that fails among others that do not is no reason to stop asking.
	for range maxFailures {
		h.well.Store(false)
		if v, err := c.Check(t.Context(), item); err != nil || !v.Degraded {
			t.Errorf("%+v %v", v, err)
		}
		h.well.Store(true)
		if v, err := c.Check(t.Context(), item); err != nil || v.Degraded {
			t.Errorf("%+v %v", v, err)
		}
	}
}

// A name that does not answer: the deadline also holds while the client connects.
func TestNobodyThere(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts by the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := connect(t, nil, Options{Address: silent.Addr().String(), Timeout: 100 * time.Millisecond})
	begin := time.Now()
	for range 10 {
		if v, err := c.Check(t.Context(), item); err != nil || !v.Degraded {
			t.Errorf("%+v %v", v, err)
		}
	}
	if took := time.Since(begin); took > 15*time.Second { // making a connection has 20 s
		t.Errorf("ten calls took %v", took)
	}
}

// The caller's own deadline is the caller's: it is an error, and says nothing about the
// service.
func TestCallerLeaves(t *testing.T) {
	h := new(hanging)
	c := connect(t, startService(t, &service{limiter: h}), Options{})
	for range 2 * maxFailures {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := c.Check(ctx, item); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	// The service may notice first.
	h.early.Store(true)
	for range 2 * maxFailures {
		ctx, cancel := context.WithTimeout(t.Context(), c.options.Timeout/2)
		if _, err := c.Check(ctx, item); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	h.well.Store(true)
	if v, err := c.Check(t.Context(), item); err != nil || v.Degraded {
		t.Errorf("%+v %v", v, err)
	}
	// A deadline that is later than ours is another matter.
	h.well.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), 2*c.options.Timeout)
	defer cancel()
	if v, err := c.Check(ctx, item); err != nil || !v.Degraded {
		t.Errorf("%+v %v", v, err)
	}
}

func TestMaxInFlight(t *testing.T) {
	h := &hanging{entered: make(chan bool, 1)}
	c := connect(t, startService(t, &service{limiter: h}), Options{MaxInFlight: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Check(ctx, item)
		done <- err
	}()
	// As soon as the first one waits, the next is answered at once.
	<-h.entered
	if v, err := c.Check(t.Context(), item); err != nil || !v.Degraded || !errors.Is(v.Err, errCrowded) {
		t.Errorf("%+v %v", v, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	h.well.Store(true)
	if v, err := c.Check(t.Context(), item); err != nil || v.Degraded {
		t.Errorf("%+v %v", v, err)
	}
}

// A service that is no weir is as good as none.
func TestWrongService(t *testing.T) {
	c := connect(t, startService(t, &service{limiter: pb.UnimplementedLimiterServer{}}), Options{OnFailure: Closed})
	for range 5 {
		if v, err := c.Check(t.Context(), item); err != nil || v.Allowed || status.Code(errors.Unwrap(v.Err)) != codes.Unimplemented {
			t.Errorf("%+v %v", v, err)
		}
	}
}

func TestClose(t *testing.T) {
	h := &hanging{entered: make(chan bool, 1)}
	s := startService(t, &service{limiter: h})
	c := connect(t, s, Options{})
	done := make(chan error)
	go func() {
		_, err := c.Check(t.Context(), item)
		done <- err
	}()
	<-h.entered
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("who waited got %v", err)
	}
	if _, err := c.Check(t.Context(), item); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	// While it tries to reach the service, too.
	s.kill()
	c = connect(t, s, Options{})
	until(t, c, item, func(*Verdict) bool { return c.breaker.away.Load() != nil })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
