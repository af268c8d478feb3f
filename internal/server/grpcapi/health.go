package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// maxReady is how long one look at the health may take.
const maxReady = 2 * time.Second

// health is grpc.health.v1. All services are ready at once, or none.
type health struct {
	healthpb.UnimplementedHealthServer
	s *Server
}

// Check implements healthpb.HealthServer.
func (h health) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !h.knows(req.GetService()) {
		return nil, failed(fault.NoService.Of("There is no service %q; leave it out to check the whole server.", manage.Clip(req.GetService())), "")
	}
	return &healthpb.HealthCheckResponse{Status: h.status(ctx)}, nil
}

// List implements healthpb.HealthServer.
func (h health) List(ctx context.Context, _ *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	status := h.status(ctx)
	answer := &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{"": {Status: status}}}
	for name := range h.s.names() {
		answer.Statuses[name] = &healthpb.HealthCheckResponse{Status: status}
	}
	return answer, nil
}

// Watch implements healthpb.HealthServer. It ends when the server is shut down.
func (h health) Watch(req *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	ctx := stream.Context()
	tick := time.NewTicker(h.s.poll)
	defer tick.Stop()
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		down := h.s.down.Err() != nil // first, so that what is told last is that it is
		now := healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		if h.knows(req.GetService()) {
			now = h.status(ctx)
		}
		if ctx.Err() != nil {
			return failed(ctx.Err(), "")
		}
		if now != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		if down {
			return failed(fault.Stopping.Of("The server is shutting down; call another one."), "")
		}
		select {
		case <-tick.C:
		case <-h.s.down.Done():
		case <-ctx.Done():
		}
	}
}

// knows is whether there is such a service; "" is all of them.
func (h health) knows(service string) bool { return service == "" || h.s.names()[service] }

// status is whether requests should come.
func (h health) status(ctx context.Context) healthpb.HealthCheckResponse_ServingStatus {
	if h.s.down.Err() != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	ctx, cancel := context.WithTimeout(ctx, maxReady)
	defer cancel()
	if h.s.options.Ready(ctx) != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}
