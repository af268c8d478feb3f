package main

import (
	"fmt"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/clients"
)

// requests are one for each value of the descriptor, as messages and encoded.
func requests(t testing.TB, values int) (messages []*pb.RateLimitRequest, encoded [][]byte) {
	for _, key := range clients.Keys(values) {
		m := &pb.RateLimitRequest{Domain: "bench", Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: key}}},
		}}
		messages, encoded = append(messages, m), append(encoded, testcall.Must(proto.Marshal(m))(t))
	}
	return messages, encoded
}

// expect requires the answer of a limit that allows.
func expect(r *pb.RateLimitResponse) error {
	if r.OverallCode != pb.RateLimitResponse_OK || len(r.Statuses) != 1 || r.Statuses[0].LimitRemaining == 0 || r.Statuses[0].CurrentLimit.GetRequestsPerUnit() != 1_000_000_000 {
		return fmt.Errorf("this is not the answer that was expected: %v", r)
	}
	return nil
}

// walkLen is a power of two.
const walkLen = 1 << 14

// walk is the order in which a caller asks.
type walk struct {
	order []uint32
	at    int
}

func newWalk(caller, values int) walk { return walk{order: clients.Walk(caller, values, walkLen)} }

// next is the number of the next request.
func (w *walk) next() uint32 {
	w.at++
	return w.order[w.at&(walkLen-1)]
}
