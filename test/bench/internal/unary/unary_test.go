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

// name is another one for each request.
func name(n int) string { return strings.Repeat("x", n*(n%16+1)%3000) }

func ask(name string) []byte {
	message, _ := proto.Marshal(&health.HealthCheckRequest{Service: name})
	return message
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
	for turn := range 3 { // a connection is used again
		before, answered := s.asked.Load(), map[int]bool{}
		asks := Asks{16, func(n int) []byte { return ask(name(n)) }, func(n int, message []byte, took time.Duration) error {
			var r health.HealthCheckResponse
			if err := proto.Unmarshal(message, &r); err != nil {
				return err
			}
			if want := len(name(n)) % 3; int(r.Status) != want || took <= 0 || answered[n] {
				return errors.New("this is the answer to another question")
			}
			answered[n] = true
			return nil
		}}
		if err := c.Run(asks, func() bool { return s.asked.Load() > before+3000 }); err != nil {
			t.Fatal(err)
		}
		if n := int(s.asked.Load() - before); n != len(answered) || n < 3000 {
			t.Errorf("turn %d: %d were answered of %d", turn, len(answered), n)
		}
	}
}

func TestTroubleIsTold(t *testing.T) {
	_, address := listen(t)
	for want, c := range map[string]struct {
		name, method string
	}{
		"nobody knows it": {"bad", method},
		"unknown method":  {"bad", method + "s"},
		"no good":         {"", method},
	} {
		conn, err := Dial(address, c.method)
		if err != nil {
			t.Fatal(err)
		}
		asks := Asks{1, func(int) []byte { return ask(c.name) }, func(int, []byte, time.Duration) error { return errors.New("no good") }}
		if err := conn.Run(asks, func() bool { return false }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		conn.Close()
	}
}
