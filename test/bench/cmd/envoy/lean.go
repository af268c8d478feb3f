package main

import (
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/loadgen"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/unary"
)

// lean is a client that leaves most of the machine to the services.
type lean struct{ lines []*line }

// line is a connection, and who asks over it.
type line struct {
	conn    *unary.Conn
	callers []unary.Caller
	took    loadgen.Histogram
}

// caller asks one request after the other.
type caller struct {
	walk
	requests [][]byte // one for each value
	took     *loadgen.Histogram
	response pb.RateLimitResponse
}

func dialLean(t testing.TB, address string, requests [][]byte, o options) *lean {
	l := &lean{}
	for range o.connections {
		conn := testcall.Must(unary.Dial(address, pb.RateLimitService_ShouldRateLimit_FullMethodName))(t)
		t.Cleanup(func() { _ = conn.Close() })
		l.lines = append(l.lines, &line{conn: conn})
	}
	for i := range o.callers {
		line := l.lines[i%len(l.lines)]
		line.callers = append(line.callers, &caller{walk: newWalk(i, o.values), requests: requests, took: &line.took})
	}
	return l
}

// ask has all callers ask for a while.
func (l *lean) ask(length time.Duration) (round, error) {
	errs := make([]error, len(l.lines))
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	cost := rounds.AtOnce(len(l.lines), func(i int) {
		l.lines[i].took = loadgen.Histogram{}
		errs[i] = l.lines[i].conn.Run(l.lines[i].callers, over.Load)
	})
	var all loadgen.Histogram
	for _, line := range l.lines {
		all.Merge(&line.took)
	}
	return sumUp(&all, 0, cost.Wall, errs)
}

// Ask implements [unary.Caller].
func (c *caller) Ask() []byte { return c.requests[c.next()] }

// Answered implements [unary.Caller].
func (c *caller) Answered(message []byte, took time.Duration) error {
	c.took.Record(took)
	if err := proto.Unmarshal(message, &c.response); err != nil {
		return err
	}
	return expect(&c.response)
}
