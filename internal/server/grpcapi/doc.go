// Package grpcapi is the gRPC API: protocol to engine and back, nothing else.
//
//	api, err := grpcapi.New(grpcapi.Options{Engine: engine, Rules: repository})
//	server := grpc.NewServer(api.ServerOptions()...)
//	api.Register(server)
//
// It is the services of package weir.v1, grpc.health.v1 and reflection. Whoever can reach
// it may ask Limiter. Rules and Keys are management: they need a token as soon as there
// is a list of them. docs/grpc.md is the reference; what a call means is what it means in
// the HTTP API.
//
// A refusal by a limit is an answer. Every error is a status with an ErrorInfo of
// google.rpc, whose reason is stable.
package grpcapi
