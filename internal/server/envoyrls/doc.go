// Package envoyrls answers Envoy as envoyproxy/ratelimit does: the service
// envoy.service.ratelimit.v3.RateLimitService over gRPC, and the same question as JSON
// over HTTP.
//
// It finds the limits in an [envoy.Config] and lets the engine decide. Unlike its model
// it charges all limits of a request or none, and answers while the store is away; with
// Options.CountRefused it counts exactly as its model does. docs/envoy.md lists every
// difference.
package envoyrls
