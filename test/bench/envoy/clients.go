package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/traffic/loadgen"
	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/bench/internal/unary"
)

// requests are one for each value of the descriptor, as messages and encoded.
func requests(t testing.TB, values int) (messages []*pb.RateLimitRequest, encoded [][]byte) {
	for _, value := range bench.Keys(values) {
		m := request("user", value)
		messages, encoded = append(messages, m), append(encoded, testkit.Must(proto.Marshal(m))(t))
	}
	return messages, encoded
}

func request(key, value string) *pb.RateLimitRequest {
	return &pb.RateLimitRequest{Domain: "bench", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}}
}

// expect requires the answer of a limit that allows.
func expect(r *pb.RateLimitResponse) error {
	if r.OverallCode != pb.RateLimitResponse_OK || len(r.Statuses) != 1 || r.Statuses[0].LimitRemaining == 0 || r.Statuses[0].CurrentLimit.GetRequestsPerUnit() != 1_000_000_000 {
		return fmt.Errorf("this is not the answer that was expected: %v", r)
	}
	return nil
}

// lean is a client that leaves most of the machine to the services.
type lean struct{ lines []*line }

// line is a connection, over which many ask.
type line struct {
	conn     *unary.Conn
	asks     unary.Asks
	took     loadgen.Histogram
	response pb.RateLimitResponse
}

func dialLean(t testing.TB, address string, requests [][]byte, o options) *lean {
	all := &lean{}
	for i := range o.connections {
		l := &line{conn: testkit.Must(unary.Dial(address, pb.RateLimitService_ShouldRateLimit_FullMethodName))(t)}
		t.Cleanup(func() { _ = l.conn.Close() })
		order := bench.NewOrder(i, o.values, bench.Short)
		l.asks = unary.Asks{InFlight: o.callers / o.connections, Ask: func(n int) []byte { return requests[order.At(n)] }, Answered: l.answered}
		all.lines = append(all.lines, l)
	}
	return all
}

func (l *line) answered(_ int, message []byte, took time.Duration) error {
	l.took.Record(took)
	if err := proto.Unmarshal(message, &l.response); err != nil {
		return err
	}
	return expect(&l.response)
}

// ask has all callers ask for a while.
func (l *lean) ask(length time.Duration) (bench.Round, error) {
	errs := make([]error, len(l.lines))
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	r := bench.AtOnce(len(l.lines), func(i int) {
		l.lines[i].took = loadgen.Histogram{}
		errs[i] = l.lines[i].conn.Run(l.lines[i].asks, over.Load)
	})
	var all loadgen.Histogram
	for _, line := range l.lines {
		all.Merge(&line.took)
	}
	r.Done = int(all.Count())
	r.Tell(&all)
	return r, errors.Join(errs...)
}

// giveUp is when a caller has no use for an answer any more.
const giveUp = 10 * time.Second

// stock is the generated client of grpc-go over one connection, as each worker thread of
// Envoy has one.
type stock struct {
	client   pb.RateLimitServiceClient
	requests []*pb.RateLimitRequest // one for each value
	check    func(*pb.RateLimitResponse) error
}

func dialStock(t testing.TB, address string, requests []*pb.RateLimitRequest) *stock {
	conn := testkit.Must(grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &stock{client: pb.NewRateLimitServiceClient(conn), requests: requests, check: expect}
}

// ask asks once.
func (s *stock) ask(ctx context.Context, request int) error {
	answer, err := s.client.ShouldRateLimit(ctx, s.requests[request])
	if err != nil {
		return err
	}
	return s.check(answer)
}

// closed keeps so many requests in flight for a while.
func (s *stock) closed(ctx context.Context, inFlight int, length time.Duration) (bench.Round, error) {
	// One deadline for all: Envoy names one, too, and a timer for each call is not what is measured.
	ctx, cancel := context.WithTimeout(ctx, length+giveUp)
	defer cancel()
	return bench.Load{Callers: inFlight, Length: length, Timed: true}.Run(func(g int) func(int) error {
		order := bench.NewOrder(g, len(s.requests), bench.Short)
		return func(n int) error { return s.ask(ctx, order.At(n)) }
	})
}

// serveVariable is in the environment of a process that does nothing but answer.
const serveVariable = "WEIR_BENCH_SERVE"

// IsNothing reports whether this process is to do nothing but answer.
func IsNothing() bool { return os.Getenv(serveVariable) != "" }

// ServeNothing prints its address, and answers until its standard input ends, which is
// when the parent process ends.
func ServeNothing() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pb.RegisterRateLimitServiceServer(server, nothing{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	fmt.Println(listener.Addr())
	return server.Serve(listener)
}

// nothing answers as the others do, without looking at the question.
type nothing struct{}

func (nothing) ShouldRateLimit(_ context.Context, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	if len(req.Descriptors) != 1 {
		return nil, errors.New("nothing: there is not one descriptor")
	}
	return &pb.RateLimitResponse{
		OverallCode: pb.RateLimitResponse_OK,
		Statuses: []*pb.RateLimitResponse_DescriptorStatus{{
			Code: pb.RateLimitResponse_OK, LimitRemaining: 1,
			CurrentLimit: &pb.RateLimitResponse_RateLimit{RequestsPerUnit: 1_000_000_000, Unit: pb.RateLimitResponse_RateLimit_HOUR},
		}},
	}, nil
}
