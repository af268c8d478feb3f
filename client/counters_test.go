package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A program that counts in a store can count in the service instead.
var _ interface {
	Add(ctx context.Context, deltas ...counter.Delta) ([]counter.Amount, error)
	Get(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error)
	Set(ctx context.Context, settings ...counter.Setting) ([]counter.Amount, error)
	Reset(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error)
	History(ctx context.Context, n int, keys ...counter.Key) ([][]counter.Point, error)
	Observe(ctx context.Context, samples ...counter.Sample) error
} = Counters{}

// newCounts is a store on a clock that stands still, at half past midnight in Shanghai.
func newCounts() *memory.Store {
	at := weir.MicrosOf(time.Date(2026, 1, 31, 16, 30, 0, 0, time.UTC))
	return memory.New(memory.Options{Clock: func() weir.Micros { return at }})
}

func amounts(t *testing.T, got []counter.Amount, err error, want string) {
	t.Helper()
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
}

func TestCounters(t *testing.T) {
	store := newCounts()
	c := connect(t, startService(t, &service{counters: store}), Options{}).Counters()
	shanghai := testkit.Must(time.LoadLocation("Asia/Shanghai"))(t)
	month := counter.Key{Name: "views", Group: "g", Window: counter.Month, Zone: shanghai}
	users := counter.Key{Name: "users", Window: counter.Year, Distinct: true}
	total := counter.Key{Name: "total"}
	got, err := c.Add(t.Context(), counter.Delta{Key: month, By: 2_500_000}, counter.Delta{Key: total, By: counter.MaxAmount - 1},
		counter.Delta{Key: users, Members: []string{"alice", "bob", "alice"}}, counter.Delta{Key: total})
	amounts(t, got, err, "[2.5 8999999999999.999999 2 8999999999999.999999]")
	if _, err := c.Add(t.Context(), counter.Delta{Key: total, By: counter.One}); !errors.Is(err, counter.ErrRange) {
		t.Error(err)
	}
	small := connect(t, startService(t, &service{counters: memory.New(memory.Options{MaxEntries: 1})}), Options{}).Counters()
	amounts(t, testkit.Must(small.Add(t.Context(), counter.Delta{Key: total, By: counter.One}))(t), nil, "[1]")
	if _, err := small.Add(t.Context(), counter.Delta{Key: month, By: counter.One}); !errors.Is(err, counter.ErrFull) {
		t.Error(err)
	}
	got, err = c.Set(t.Context(), counter.Setting{Key: total, To: -1})
	amounts(t, got, err, "[8999999999999.999999]")
	got, err = c.Get(t.Context(), total, month, users, counter.Key{Name: "none", Zone: time.UTC})
	amounts(t, got, err, "[-0.000001 2.5 2 0]")
	got, err = c.Reset(t.Context(), total)
	amounts(t, got, err, "[-0.000001]")

	for _, keys := range [][]counter.Key{{month}, {users, {Name: "users", Window: counter.Second}}} {
		points, err := c.History(t.Context(), 3, keys...)
		if want := testkit.Must(store.History(t.Context(), 3, keys...))(t); err != nil || !reflect.DeepEqual(points, want) {
			t.Errorf("%v, %v; want %v", points, err, want)
		}
	}
	if points := testkit.Must(c.History(t.Context(), 1, total))(t); len(points) != 1 || len(points[0]) != 1 || points[0][0] != (counter.Point{}) {
		t.Errorf("%v", points)
	}

	ms := counter.Key{Name: "ms", Window: counter.Day, Zone: shanghai}
	sample := counter.Sample{Key: ms}
	for i := range 100 {
		sample.Values = append(sample.Values, counter.Whole(int64(i))+1)
	}
	testkit.OK(t, c.Observe(t.Context(), sample))
	all, err := c.Distributions(t.Context(), 2, ms)
	windows, merged := counter.Summarize(testkit.Must(store.Distributions(t.Context(), 2, ms))(t)[0])
	if want := []Distribution{{windows, merged}}; err != nil || !reflect.DeepEqual(all, want) || merged.Count != 100 || merged.P95 == merged.P99 {
		t.Errorf("%v, %v; want %v", all, err, want)
	}
}

// What is wrong is found before it is sent, or by the service, and opens no breaker.
func TestCounterErrors(t *testing.T) {
	s := startService(t, &service{counters: newCounts()})
	client := connect(t, s, Options{OnFailure: Closed})
	c := client.Counters()
	key := counter.Key{Name: "a"}
	for field, err := range map[string]error{
		"name":    testkit.Err(c.Get(t.Context(), counter.Key{Name: "\xff"})),
		"group":   testkit.Err(c.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "a", Group: "\xff"}})),
		"member":  testkit.Err(c.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "a", Distinct: true}, Members: []string{"\xff"}})),
		"members": testkit.Err(c.Add(t.Context(), counter.Delta{Key: key, Members: []string{"m"}})),
		"to":      testkit.Err(c.Set(t.Context(), counter.Setting{Key: key, To: counter.MaxAmount + 1})),
		"keys":    testkit.Err(c.Reset(t.Context())),
		"zone":    testkit.Err(c.Get(t.Context(), counter.Key{Name: "a", Zone: time.Local})),
		"n":       testkit.Err(c.History(t.Context(), math.MaxInt32, key)),
		"values":  c.Observe(t.Context(), counter.Sample{Key: key, Values: []counter.Amount{-1}}),
	} {
		var invalid *weir.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
	for range 2 * maxFailures {
		if _, err := c.History(t.Context(), 2, key); status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(err.Error(), "client: ") {
			t.Errorf("%v", err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(over, key); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if v := testkit.Must(client.Check(t.Context(), &Request{}))(t); v.Degraded {
		t.Errorf("%+v", v)
	}
	client.Close()
	if _, err := c.Get(t.Context(), key); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// goneCounts is a store that does not answer.
type goneCounts struct{ counter.Store }

func (goneCounts) Get(context.Context, ...counter.Key) ([]counter.Amount, error) {
	return nil, counter.ErrUnavailable
}

// If counters are unavailable, or their token is wrong, checks are made as before.
func TestCountersUnavailable(t *testing.T) {
	list := testkit.Must(trust.ParseTokens([]byte("alice use a-token-that-is-long-enough\nbob read another-token-long-enough\n")))(t)
	s := startService(t, &service{counters: goneCounts{newCounts()}, tokens: list})
	for _, token := range []string{"", "another-token-long-enough", "a-token-that-is-long-enough"} {
		client := connect(t, s, Options{Token: token, OnFailure: Closed})
		c := client.Counters()
		for range 2 * maxFailures {
			_, err := c.Get(t.Context(), counter.Key{Name: "a"})
			if token == "" && status.Code(err) != codes.Unauthenticated || token != "" && !errors.Is(err, counter.ErrUnavailable) {
				t.Errorf("%q: %v", token, err)
			}
			_, err = c.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "a"}})
			if want := map[string]codes.Code{"": codes.Unauthenticated, "another-token-long-enough": codes.PermissionDenied}[token]; status.Code(err) != want {
				t.Errorf("%q: %v", token, err)
			}
		}
		if v := testkit.Must(client.Check(t.Context(), &Request{}))(t); v.Degraded {
			t.Errorf("%q: %+v", token, v)
		}
	}
	client := connect(t, s, Options{})
	until(t, client, &Request{}, func(v *Verdict) bool { return !v.Degraded })
	s.kill()
	for range 2 * maxFailures {
		if _, err := client.Counters().Get(t.Context(), counter.Key{Name: "a"}); !errors.Is(err, counter.ErrUnavailable) {
			t.Error(err)
		}
	}
	until(t, client, &Request{}, func(*Verdict) bool { away, _ := client.breaker.state(); return away != nil })
	if _, err := client.Counters().Get(t.Context(), counter.Key{Name: "a"}); !errors.Is(err, counter.ErrUnavailable) {
		t.Error(err)
	}
}

// wrongCounters answers something else than it was asked.
type wrongCounters struct{ pb.UnimplementedCountersServer }

func (wrongCounters) GetCounters(_ context.Context, req *pb.GetCountersRequest) (*pb.CountersResponse, error) {
	return &pb.CountersResponse{Values: []string{"x", "2"}[:len(req.Keys)%2+1]}, nil
}

func (wrongCounters) GetCounterHistory(context.Context, *pb.GetCounterHistoryRequest) (*pb.GetCounterHistoryResponse, error) {
	return &pb.GetCounterHistoryResponse{}, nil
}

func (wrongCounters) GetDistributions(context.Context, *pb.GetDistributionsRequest) (*pb.GetDistributionsResponse, error) {
	return &pb.GetDistributionsResponse{Distributions: []*pb.Distribution{{Merged: &pb.Percentiles{Sum: "1e9"}}}}, nil
}

func TestCountersOfOthers(t *testing.T) {
	s := &service{limiter: pb.UnimplementedLimiterServer{}}
	s.register = func(server *grpc.Server) { pb.RegisterCountersServer(server, wrongCounters{}) }
	c := connect(t, startService(t, s), Options{}).Counters()
	key := counter.Key{Name: "a"}
	for what, err := range map[string]error{
		"1 counters have 2 answers": testkit.Err(c.Get(t.Context(), key)),
		"2 counters have 1 answers": testkit.Err(c.Get(t.Context(), key, key)),
		"1 counters have 0 answers": testkit.Err(c.History(t.Context(), 1, key)),
		`"1e9", which is not an`:    testkit.Err(c.Distributions(t.Context(), 1, key)),
		"Unimplemented":             testkit.Err(c.Reset(t.Context(), key)),
	} {
		if err == nil || !strings.Contains(err.Error(), what) || errors.Is(err, counter.ErrUnavailable) {
			t.Errorf("%v, want %s", err, what)
		}
	}
}
