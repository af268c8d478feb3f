package grpcapi

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip" // as other libraries do in weir itself
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// raw sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (raw) Unmarshal(_ []byte, _ any) error { return nil }
func (raw) Name() string                    { return "proto" }

// hurl calls a method many times at once with bytes, and returns the codes of the answers.
func (s *stand) hurl(ctx context.Context, method string, message []byte, times int, options ...grpc.CallOption) map[codes.Code]int {
	var mu sync.Mutex
	got := map[codes.Code]int{}
	var wg sync.WaitGroup
	for range times {
		wg.Go(func() {
			err := s.conn.Invoke(ctx, method, message, new([]byte), append(options, grpc.ForceCodec(raw{}))...)
			mu.Lock()
			defer mu.Unlock()
			got[status.Code(err)]++
		})
	}
	wg.Wait()
	return got
}

// Whatever is sent, and by however many at once, takes little memory. Four kilobytes that
// were compressed once took 280 MB.
func TestHostileMessages(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	empty := func(tag byte, size int) []byte { return bytes.Repeat([]byte{tag, 0}, size/2) }
	named, err := proto.Marshal(&healthpb.HealthCheckRequest{Service: strings.Repeat("a", 4<<20)})
	if err != nil {
		t.Fatal(err)
	}
	document, err := proto.Marshal(&pb.ValidateRulesRequest{Source: strings.Repeat("#", rule.MaxDocument)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, method string
		message      []byte
		want         codes.Code
		options      []grpc.CallOption
	}{
		{"compressed", pb.Limiter_CheckMany_FullMethodName, empty(0x0a, 200_000), codes.Unimplemented, []grpc.CallOption{grpc.UseCompressor(gzip.Name)}},
		{"compressed and short", pb.Limiter_Check_FullMethodName, empty(0x0a, 100), codes.Unimplemented, []grpc.CallOption{grpc.UseCompressor(gzip.Name)}},
		{"long", pb.Limiter_CheckMany_FullMethodName, empty(0x0a, 4<<20), codes.ResourceExhausted, nil},
		{"many requests", pb.Limiter_CheckMany_FullMethodName, empty(0x0a, 1<<20), codes.InvalidArgument, nil},
		{"a long request", pb.Limiter_Check_FullMethodName, empty(0x42, 4<<20), codes.ResourceExhausted, nil},
		{"many headers", pb.Limiter_Check_FullMethodName, empty(0x42, 100<<10), codes.InvalidArgument, nil},
		{"many headers in many requests", pb.Limiter_CheckMany_FullMethodName, append([]byte{0x0a, 0xa0, 0x8d, 0x06}, empty(0x42, 100_000)...), codes.InvalidArgument, nil},
		{"health", healthpb.Health_Check_FullMethodName, named, codes.ResourceExhausted, nil},
		{"a document without a token", pb.Rules_ValidateRules_FullMethodName, document, codes.Unauthenticated, nil},
		{"counters without a token", pb.Counters_AddCounters_FullMethodName, empty(0x0a, 200<<10), codes.Unauthenticated, nil},
		{"a key", pb.Keys_GetKey_FullMethodName, document, codes.Unauthenticated, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got map[codes.Code]int
			most := testkit.Least(64<<20, func() { got = s.hurl(t.Context(), c.method, c.message, 64, c.options...) })
			if got[c.want] == 0 || got[c.want]+got[codes.Unavailable] != 64 { // some may find no room
				t.Errorf("answered %v, want %s", got, c.want)
			}
			if most > 64<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
			t.Logf("%d MiB", most>>20)
		})
	}
}

// The same of counters: many of them, many members of one, and many members of each.
func TestHostileCounters(t *testing.T) {
	s := newStand(t, Options{})
	empty := func(tag byte, size int) []byte { return bytes.Repeat([]byte{tag, 0}, size/2) }
	within := func(message []byte) []byte { return protowire.AppendBytes([]byte{0x0a}, message) }
	for name, c := range map[string]struct {
		message []byte
		want    codes.Code
	}{
		"long":                  {empty(0x0a, 1<<20), codes.ResourceExhausted},
		"many counters":         {empty(0x0a, 250<<10), codes.InvalidArgument},
		"many keys":             {within(empty(0x0a, 250<<10)), codes.InvalidArgument},
		"many members":          {within(empty(0x1a, 250<<10)), codes.InvalidArgument},
		"many members of each":  {bytes.Repeat(within(empty(0x1a, 1<<10)), 250), codes.InvalidArgument},
		"a long list of nobody": {bytes.Repeat(within(nil), 500), codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[codes.Code]int
			most := testkit.Least(64<<20, func() { got = s.hurl(t.Context(), pb.Counters_AddCounters_FullMethodName, c.message, 64) })
			if got[c.want] == 0 || got[c.want]+got[codes.Unavailable] != 64 || most > 64<<20 {
				t.Errorf("answered %v, want %s; it took %d MiB", got, c.want, most>>20)
			}
			t.Logf("%d MiB", most>>20)
		})
	}
}

// The same of streams.
func TestHostileStreams(t *testing.T) {
	s := newStand(t, Options{})
	long := strings.Repeat("a", 4<<20)
	most := testkit.Least(256<<20, func() {
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				watch, err := s.health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: long})
				if err == nil {
					_, err = watch.Recv()
				}
				if status.Code(err) != codes.ResourceExhausted {
					t.Errorf("watching the health: %v", err)
				}
				reflect, err := reflectionpb.NewServerReflectionClient(s.conn).ServerReflectionInfo(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				_ = reflect.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{ListServices: "*"}})
				if answer, err := reflect.Recv(); err != nil || len(answer.GetListServicesResponse().GetService()) == 0 {
					t.Errorf("reflection: %v, %v", answer, err)
				}
				_ = reflect.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: long}})
				if _, err := reflect.Recv(); status.Code(err) != codes.ResourceExhausted {
					t.Errorf("reflection of something long: %v", err)
				}
			})
		}
		wg.Wait()
	})
	if most > 256<<20 { // of which the clients have half: each makes its message
		t.Errorf("it took %d MiB", most>>20)
	}
}

// Documents of every length that is read come through, with a token.
func TestLongMessages(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	var wg sync.WaitGroup
	for _, size := range []int{100 << 10, 1 << 20, rule.MaxDocument} {
		wg.Go(func() {
			source := "rules: []\n" + strings.Repeat("#", size-10)
			answer, err := s.admin.ValidateRules(as(t.Context(), readerToken), &pb.ValidateRulesRequest{Source: source})
			if err != nil || !answer.GetValid() {
				t.Errorf("%v, %v", answer, err)
			}
		})
	}
	wg.Wait()
	many := &pb.CheckManyRequest{}
	for range MaxChecks {
		many.Requests = append(many.Requests, &pb.CheckRequest{Ip: "203.0.113.7", Headers: map[string]string{"X-Long": strings.Repeat("a", 8000)}})
	}
	if answer, err := s.limiter.CheckMany(t.Context(), many); err != nil || len(answer.GetResponses()) != MaxChecks {
		t.Errorf("%v, %v", answer, err)
	}
}

// A client that begins messages and does not complete them blocks no other client: the
// oldest of them are ended.
func TestUnfinishedMessages(t *testing.T) {
	s := newStand(t, Options{})
	description := &grpc.StreamDesc{ClientStreams: true}
	var mu sync.Mutex
	open, ended := 0, 0
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 6 { // connections
		conn, err := grpc.NewClient(s.conn.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		for range 200 {
			wg.Go(func() {
				stream, err := conn.NewStream(ctx, description, pb.Limiter_Check_FullMethodName)
				if err == nil {
					err = stream.SendMsg(&pb.CheckRequest{Ip: "203.0.113.7"}) // and no more
				}
				mu.Lock()
				open++
				mu.Unlock()
				if err == nil {
					err = stream.RecvMsg(new(pb.CheckResponse))
				}
				mu.Lock()
				ended++
				mu.Unlock()
				if err == io.EOF {
					t.Error("it was answered")
				}
			})
		}
	}
	waitFor(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return open == 1200 && ended >= 1200-1024
	})
	if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{Ip: "203.0.113.7"}); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	cancel()
	wg.Wait()
}

func waitFor(t *testing.T, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !isSo(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not become so within two minutes")
		}
	}
}
