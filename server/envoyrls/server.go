package envoyrls

import "google.golang.org/grpc"

// workers are as many as answer at once without a goroutine being made.
const workers = 128

// ServerOptions suit a gRPC server that answers Envoy. Requests are short and many, so
// that it pays to answer them on goroutines that are there already, whose stacks have
// grown; when all of those wait, there are new ones.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.NumStreamWorkers(workers)}
}
