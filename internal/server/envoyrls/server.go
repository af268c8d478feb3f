package envoyrls

import (
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/internal/inbound"
)

// workers are as many as answer at once without a goroutine being made.
const workers = 128

// ServerOptions suit a gRPC server that answers Envoy. Requests are short and many, so
// that it pays to answer them on goroutines that are there already, whose stacks have
// grown; when all of those wait, there are new ones. Windows have a fixed size, because
// to find out which one would be best takes a ping in every round trip.
func ServerOptions() []grpc.ServerOption {
	return append(inbound.ServerOptions(), grpc.NumStreamWorkers(workers))
}

// Register makes the service known to a gRPC server, and keeps what is sent to it within
// bounds: twice what is accepted, so that whoever is a little beyond is told what it is about.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	pb.RegisterRateLimitServiceServer(inbound.New(inbound.Options{
		Large: 16 << 20, Decoded: 8 << 20,
		Bounds: map[protoreflect.FullName]inbound.Bound{
			"envoy.service.ratelimit.v3.RateLimitRequest":              {Bytes: MaxBody, Parts: 2 * MaxDescriptors},
			"envoy.extensions.common.ratelimit.v3.RateLimitDescriptor": {Parts: 2 * MaxEntries},
		},
	}).Registrar(r), s)
}
