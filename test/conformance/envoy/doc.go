// Package envoy holds weir against envoyproxy/ratelimit: both get the same files and
// the same requests, each with a Redis of its own, and must answer the same in every
// field. What differs on purpose is a list in differences_test.go, and in docs/guides/envoy.md.
//
// It is a separate module, so that users do not download what is needed to build the
// other service.
package envoy
