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
)

// serveVariable is in the environment of a process that does nothing but answer.
const serveVariable = "WEIR_BENCH_SERVE"

// serveNothing prints its address, and answers until its standard input ends, which is
// when the parent process ends.
func serveNothing() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pb.RegisterRateLimitServiceServer(server, nothing{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	fmt.Println(listener.Addr())
	return server.Serve(listener)
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
