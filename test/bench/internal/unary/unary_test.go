package unary

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const method = health.Health_Check_FullMethodName

// service says that everything is well whose name is not "bad".
type service struct {
	health.UnimplementedHealthServer
	asked atomic.Int64
}

func (s *service) Check(ctx context.Context, req *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	s.asked.Add(1)
	if _, ok := ctx.Deadline(); !ok {
		return nil, status.Error(codes.Internal, "there is no deadline")
	}
	if req.Service == "bad" {
		return nil, status.Error(codes.NotFound, "nobody knows it")
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_ServingStatus(len(req.Service) % 3)}, nil
}

func listen(t *testing.T) (*service, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, server := &service{}, grpc.NewServer()
	health.RegisterHealthServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return s, l.Addr().String()
}

// asker asks with names that grow, and expects each answer to be for its own.
type asker struct {
	t        *testing.T
	n, size  int
	answered int
}

func (a *asker) name() string { return strings.Repeat("x", (a.n*a.size)%5000) }

func (a *asker) Ask() []byte {
	a.n++
	message, err := proto.Marshal(&health.HealthCheckRequest{Service: a.name()})
	if err != nil {
		a.t.Error(err)
	}
	return message
}

func (a *asker) Answered(message []byte, took time.Duration) error {
	var r health.HealthCheckResponse
	if err := proto.Unmarshal(message, &r); err != nil {
		return err
	}
	a.answered++
	if want := len(a.name()) % 3; int(r.Status) != want || took <= 0 {
		return errors.New("this is the answer to another question")
	}
	return nil
}

// Thousands of requests, sixteen at once and more bytes than the windows have, are each
// answered once.
func TestRun(t *testing.T) {
	s, address := listen(t)
	c, err := Dial(address, method)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var callers []Caller
	for i := range 16 {
		callers = append(callers, &asker{t: t, size: i + 1})
	}
	for turn := range 3 { // a connection is used again
		before := s.asked.Load()
		if err := c.Run(callers, func() bool { return s.asked.Load() > before+3000 }); err != nil {
			t.Fatal(err)
		}
		answered := 0
		for _, a := range callers {
			answered += a.(*asker).answered
		}
		if n := s.asked.Load(); int(n) != answered || n < 3000 {
			t.Errorf("turn %d: %d were answered of %d", turn, answered, n)
		}
	}
}

// bad asks for what fails.
type bad struct{}

func (bad) Ask() []byte {
	message, _ := proto.Marshal(&health.HealthCheckRequest{Service: "bad"})
	return message
}

func (bad) Answered([]byte, time.Duration) error { return nil }

type doubtful struct{}

func (doubtful) Ask() []byte { return nil }

func (doubtful) Answered([]byte, time.Duration) error { return errors.New("no good") }

func TestTroubleIsTold(t *testing.T) {
	_, address := listen(t)
	for want, c := range map[string]struct {
		caller Caller
		method string
	}{
		"nobody knows it": {bad{}, method},
		"unknown method":  {bad{}, method + "s"},
		"no good":         {doubtful{}, method},
	} {
		conn, err := Dial(address, c.method)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Run([]Caller{c.caller}, func() bool { return false }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		conn.Close()
	}
}
