#!/bin/sh
# Writes the Go code of the .proto files again, by plugins in pinned versions.
set -eu
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN="$tools" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN="$tools" go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
PATH="$tools:$PATH" protoc -I sdk/proto --go_out=. --go_opt=module=github.com/weirhq/weir \
	--go-grpc_out=. --go-grpc_opt=module=github.com/weirhq/weir sdk/proto/weir/v1/weir.proto
