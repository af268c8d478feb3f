package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/ballast"
	"github.com/weirhq/weir/internal/envoyconfig"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// A process with these in its environment is a contestant.
const (
	serveVariable  = "WEIR_BENCH_SERVE" // nothing, memory, or the URL of a Redis
	configVariable = "WEIR_BENCH_CONFIG"
)

const configuration = `
domain: bench
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000000000}
`

// serve prints its address, and answers until its standard input ends, which is when
// the parent process ends.
func serve(what string) error {
	service, err := newService(what)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var options []grpc.ServerOption
	if what != "nothing" { // as weir serve does it
		options = envoyrls.ServerOptions()
		defer ballast.Room(ballast.Service)()
	}
	server := grpc.NewServer(options...)
	if s, ok := service.(*envoyrls.Service); ok {
		s.Register(server) // as weir serve does it, too
	} else {
		pb.RegisterRateLimitServiceServer(server, service)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	fmt.Println(listener.Addr())
	return server.Serve(listener)
}

func newService(what string) (pb.RateLimitServiceServer, error) {
	if what == "nothing" {
		return nothing{}, nil
	}
	dir, err := envoyconfig.Open(os.Getenv(configVariable), envoyconfig.Options{})
	if err != nil {
		return nil, err
	}
	var store weir.Store = memory.New(memory.Options{})
	if what != "memory" {
		if store, err = redis.Open(what); err != nil {
			return nil, err
		}
	}
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		return nil, err
	}
	return envoyrls.New(envoyrls.Options{Engine: e, Config: dir.Config})
}

// nothing answers as the others do, without looking at the question.
type nothing struct{}

func (nothing) ShouldRateLimit(_ context.Context, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	if len(req.Descriptors) != 1 {
		return nil, errors.New("nothing: there is not one descriptor")
	}
	return &pb.RateLimitResponse{
		OverallCode: pb.RateLimitResponse_OK,
		Statuses: []*pb.RateLimitResponse_DescriptorStatus{{
			Code: pb.RateLimitResponse_OK, LimitRemaining: 1,
			CurrentLimit: &pb.RateLimitResponse_RateLimit{RequestsPerUnit: 1_000_000_000, Unit: pb.RateLimitResponse_RateLimit_HOUR},
		}},
	}, nil
}
