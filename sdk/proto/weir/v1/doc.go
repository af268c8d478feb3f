// Package weirv1 is weir.v1, the gRPC API: messages and services, generated from
// weir.proto by make generate. Package client is the pleasant way to use it from Go.
package weirv1
