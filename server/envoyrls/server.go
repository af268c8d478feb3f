package envoyrls

import "google.golang.org/grpc"

// workers are as many as answer at once without a goroutine being made.
const workers = 128

// Bytes that a client may send before they are read.
const (
	streamWindow = 256 << 10
	connWindow   = 4 << 20
)

// ServerOptions suit a gRPC server that answers Envoy. Requests are short and many, so
// that it pays to answer them on goroutines that are there already, whose stacks have
// grown; when all of those wait, there are new ones. Windows have a fixed size, because
// to find out which one would be best takes a ping in every round trip.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.NumStreamWorkers(workers),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connWindow),
	}
}
