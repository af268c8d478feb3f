package grpcapi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// counterCalls is every method of counters, with a call that would succeed.
var counterCalls = map[string]struct {
	call    caller
	changes bool
}{
	pb.Counters_AddCounters_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.AddCounters(ctx, &pb.AddCountersRequest{Add: []*pb.CounterDelta{{Key: named("a")}}}, opts...))
	}, true},
	pb.Counters_SetCounters_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.SetCounters(ctx, &pb.SetCountersRequest{Set: []*pb.CounterSetting{{Key: named("a"), Value: "1"}}}, opts...))
	}, true},
	pb.Counters_ResetCounters_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.ResetCounters(ctx, &pb.ResetCountersRequest{Keys: []*pb.CounterKey{named("a")}}, opts...))
	}, true},
	pb.Counters_GetCounters_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.GetCounters(ctx, &pb.GetCountersRequest{Keys: []*pb.CounterKey{named("a")}}, opts...))
	}, false},
	pb.Counters_GetCounterHistory_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.GetCounterHistory(ctx, &pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{named("a")}}, opts...))
	}, false},
	pb.Counters_Observe_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.Observe(ctx, &pb.ObserveRequest{Observe: []*pb.Sample{{Key: named("a"), Values: []float64{1}}}}, opts...))
	}, true},
	pb.Counters_GetDistributions_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		return testkit.Err(s.counters.GetDistributions(ctx, &pb.GetDistributionsRequest{Keys: []*pb.CounterKey{named("a")}}, opts...))
	}, false},
}

func named(name string) *pb.CounterKey { return &pb.CounterKey{Name: name} }

// says fails unless an answer is just this, in JSON.
func says(t *testing.T, answer proto.Message, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	wanted := answer.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal([]byte(want), wanted); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(answer, wanted) {
		t.Errorf("the answer is %v, want %v", answer, wanted)
	}
}

func TestCounters(t *testing.T) {
	s := newPipe(t, Options{})
	day := &pb.CounterKey{Name: "views", Window: pb.Window_WINDOW_DAY, Zone: "Asia/Shanghai"}
	users := &pb.CounterKey{Name: "users", Window: pb.Window_WINDOW_MONTH, Distinct: true}
	add := func(want string, deltas ...*pb.CounterDelta) {
		t.Helper()
		answer, err := s.counters.AddCounters(t.Context(), &pb.AddCountersRequest{Add: deltas})
		says(t, answer, err, want)
	}
	add(`{"values": ["1", "2.5", "-3", "2"]}`, &pb.CounterDelta{Key: named("views")}, &pb.CounterDelta{Key: day, By: "2.5"},
		&pb.CounterDelta{Key: &pb.CounterKey{Name: "b", Group: "g"}, By: "-3"}, &pb.CounterDelta{Key: named("views"), By: "1"})
	add(`{"values": ["2"]}`, &pb.CounterDelta{Key: users, Members: []string{"alice", "bob", "alice"}})
	add(`{"values": ["8999999999999.999999"]}`, &pb.CounterDelta{Key: named("large"), By: "8999999999999.999999"})
	_, err := s.counters.AddCounters(t.Context(), &pb.AddCountersRequest{Add: []*pb.CounterDelta{{Key: named("large")}, {Key: named("views")}}})
	want(t, err, fault.OutOfRange, "nothing was counted")

	set, err := s.counters.SetCounters(t.Context(), &pb.SetCountersRequest{Set: []*pb.CounterSetting{{Key: named("views"), Value: "0.000001"}}})
	says(t, set, err, `{"values": ["2"]}`)
	reset, err := s.counters.ResetCounters(t.Context(), &pb.ResetCountersRequest{Keys: []*pb.CounterKey{named("views"), named("none")}})
	says(t, reset, err, `{"values": ["0.000001", "0"]}`)

	s.move(31 * 24 * time.Hour)
	add(`{"values": ["1"]}`, &pb.CounterDelta{Key: users, Members: []string{"alice"}})
	got, err := s.counters.GetCounters(t.Context(), &pb.GetCountersRequest{Keys: []*pb.CounterKey{users, day, {Name: "b", Group: "g"}}})
	says(t, got, err, `{"values": ["1", "0", "-3"]}`)
	history, err := s.counters.GetCounterHistory(t.Context(), &pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{users}, N: 2})
	says(t, history, err, `{"counters": [{"points": [{"start": "2026-01-01T00:00:00Z", "value": "2"}, {"start": "2026-02-01T00:00:00Z", "value": "1"}]}]}`)
	history, err = s.counters.GetCounterHistory(t.Context(), &pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{day}, N: 32})
	if err != nil || len(history.Counters[0].Points) != 32 || history.Counters[0].Points[0].Start.AsTime() != time.Date(2025, 12, 31, 16, 0, 0, 0, time.UTC) {
		t.Errorf("%v, %v", history, err)
	}
	for n, key := range map[int]*pb.CounterKey{1: named("views"), 10: {Name: "views", Window: pb.Window_WINDOW_YEAR}} {
		if usual, err := s.counters.GetCounterHistory(t.Context(), &pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{key}}); err != nil || len(usual.Counters[0].Points) != n {
			t.Errorf("%v, %v; want %d points", usual, err, n)
		}
	}
}

func TestDistributions(t *testing.T) {
	s := newPipe(t, Options{})
	ms := &pb.CounterKey{Name: "ms", Window: pb.Window_WINDOW_MINUTE}
	observe := func(samples ...*pb.Sample) {
		t.Helper()
		testkit.Must(s.counters.Observe(t.Context(), &pb.ObserveRequest{Observe: samples}))(t)
	}
	observe(&pb.Sample{Key: ms, Values: []float64{10, 20, 30}}, &pb.Sample{Key: ms, Values: []float64{0.5}}, &pb.Sample{Key: named("ms"), Values: []float64{7.00000000005}})
	s.move(time.Minute)
	observe(&pb.Sample{Key: ms, Values: []float64{40}})
	got, err := s.counters.GetDistributions(t.Context(), &pb.GetDistributionsRequest{Keys: []*pb.CounterKey{ms}, N: 3})
	says(t, got, err, `{"distributions": [{"points": [{"start": "2025-12-31T23:59:00Z"},
		{"start": "2026-01-01T00:00:00Z", "count": 4, "sum": "60.5", "mean": "15.125", "min": "0.5", "max": "30", "p50": "10.092544", "p95": "30", "p99": "30"},
		{"start": "2026-01-01T00:01:00Z", "count": 1, "sum": "40", "mean": "40", "min": "40", "max": "40", "p50": "40", "p95": "40", "p99": "40"}],
		"merged": {"count": 5, "sum": "100.5", "mean": "20.1", "min": "0.5", "max": "40", "p50": "20.185088", "p95": "40", "p99": "40"}}]}`)
	many := &pb.Sample{Key: named("many")}
	for i := range 100 {
		many.Values = append(many.Values, float64(i+1))
	}
	observe(many)
	got, err = s.counters.GetDistributions(t.Context(), &pb.GetDistributionsRequest{Keys: []*pb.CounterKey{named("many")}})
	figures := `{"count": 100, "sum": "5050", "mean": "50.5", "min": "1", "max": "100", "p50": "49.80736", "p95": "95.420416", "p99": "99.61472"}`
	says(t, got, err, `{"distributions": [{"points": [`+figures+`], "merged": `+figures+`}]}`)
	got, err = s.counters.GetDistributions(t.Context(), &pb.GetDistributionsRequest{Keys: []*pb.CounterKey{named("ms"), named("none")}})
	says(t, got, err, `{"distributions": [{"points": [{"count": 1, "sum": "7", "mean": "7", "min": "7", "max": "7", "p50": "7", "p95": "7", "p99": "7"}],
		"merged": {"count": 1, "sum": "7", "mean": "7", "min": "7", "max": "7", "p50": "7", "p95": "7", "p99": "7"}}, {"points": [{}], "merged": {}}]}`)
}

// What is wrong is named by its field, and nothing is changed.
func TestCountersInvalid(t *testing.T) {
	s := newPipe(t, Options{})
	delta := func(d *pb.CounterDelta) *pb.AddCountersRequest {
		return &pb.AddCountersRequest{Add: []*pb.CounterDelta{{Key: named("a")}, d}}
	}
	members := func(n int) []string { return slices.Repeat([]string{"m"}, n) }
	for _, c := range []struct {
		req          any
		field, words string
	}{
		{&pb.AddCountersRequest{}, "add", "required"},
		{&pb.AddCountersRequest{Add: slices.Repeat([]*pb.CounterDelta{{Key: named("a")}}, counter.MaxBatch+1)}, "add", "257"},
		{delta(&pb.CounterDelta{}), "add[1].key.name", "empty"},
		{delta(&pb.CounterDelta{Key: named(strings.Repeat("n", 257))}), "add[1].key.name", "257 bytes"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Group: strings.Repeat("n", 257)}}), "add[1].key.group", "257 bytes"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Window: 260}}), "add[1].key.window", "260"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Zone: "Mars/North"}}), "add[1].key.zone", "Asia/Shanghai"},
		{delta(&pb.CounterDelta{Key: named("a"), By: "1e3"}), "add[1].by", "1e3"},
		{delta(&pb.CounterDelta{Key: named("a"), By: strings.Repeat("9", 100_000)}), "add[1].by", "too large"},
		{delta(&pb.CounterDelta{Key: named("a"), Members: members(1)}), "add[1].members", "distinct"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Distinct: true}}), "add[1].members", "required"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Distinct: true}, By: "1", Members: members(1)}), "add[1].by", "once"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Distinct: true}, Members: []string{"m", ""}}), "add[1].members[1]", "empty"},
		{delta(&pb.CounterDelta{Key: &pb.CounterKey{Name: "a", Distinct: true}, Members: members(257)}), "add[1].members", "256"},
		{&pb.SetCountersRequest{Set: []*pb.CounterSetting{{Key: named("a")}}}, "set[0].value", "required"},
		{&pb.SetCountersRequest{Set: []*pb.CounterSetting{{Key: named("a"), Value: "x"}}}, "set[0].value", "decimal"},
		{&pb.SetCountersRequest{Set: []*pb.CounterSetting{{Key: &pb.CounterKey{Name: "a", Distinct: true}, Value: "1"}}}, "set[0].distinct", "reset it"},
		{&pb.ResetCountersRequest{}, "keys", "required"},
		{&pb.GetCountersRequest{Keys: []*pb.CounterKey{named("a"), nil}}, "keys[1].name", "empty"},
		{&pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{{Name: "a", Window: pb.Window_WINDOW_DAY}}, N: 367}, "n", "366"},
		{&pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{named("a")}, N: -1}, "n", "1 or more"},
		{&pb.ObserveRequest{Observe: []*pb.Sample{{Key: named("a")}}}, "observe[0].values", "required"},
		{&pb.ObserveRequest{Observe: []*pb.Sample{{Key: named("a"), Values: []float64{1, math.NaN()}}}}, "observe[0].values[1]", "NaN"},
		{&pb.ObserveRequest{Observe: []*pb.Sample{{Key: named("a"), Values: []float64{-1}}}}, "observe[0].values", "from 0"},
		{&pb.ObserveRequest{Observe: []*pb.Sample{{Key: &pb.CounterKey{Name: "a", Distinct: true}, Values: []float64{1}}}}, "observe[0].distinct", "leave it out"},
		{&pb.GetDistributionsRequest{Keys: []*pb.CounterKey{{Name: "a", Window: pb.Window_WINDOW_SECOND}}, N: math.MaxInt32}, "n", "1 to 366"},
	} {
		var err error
		switch req := c.req.(type) {
		case *pb.AddCountersRequest:
			_, err = s.counters.AddCounters(t.Context(), req)
		case *pb.SetCountersRequest:
			_, err = s.counters.SetCounters(t.Context(), req)
		case *pb.ResetCountersRequest:
			_, err = s.counters.ResetCounters(t.Context(), req)
		case *pb.GetCountersRequest:
			_, err = s.counters.GetCounters(t.Context(), req)
		case *pb.GetCounterHistoryRequest:
			_, err = s.counters.GetCounterHistory(t.Context(), req)
		case *pb.ObserveRequest:
			_, err = s.counters.Observe(t.Context(), req)
		case *pb.GetDistributionsRequest:
			_, err = s.counters.GetDistributions(t.Context(), req)
		}
		want(t, err, fault.BadField, c.words).about(t, c.field)
	}
	got, err := s.counters.GetCounters(t.Context(), &pb.GetCountersRequest{Keys: []*pb.CounterKey{named("a")}})
	says(t, got, err, `{"values": ["0"]}`)
}

// The largest batch of the longest names fits into a message.
func TestLargestCounters(t *testing.T) {
	s := newPipe(t, Options{})
	req := &pb.AddCountersRequest{}
	for i := range counter.MaxBatch {
		name := strings.Repeat("n", counter.MaxNameLen-3) + fmt.Sprintf("%03d", i)
		req.Add = append(req.Add, &pb.CounterDelta{Key: &pb.CounterKey{
			Name: name, Group: name, Window: pb.Window_WINDOW_MINUTE, Zone: "America/Argentina/ComodRivadavia", Distinct: i == 255,
		}})
		req.Add[0].Members = append(req.Add[0].Members, name)
	}
	req.Add[0].Members, req.Add[255].Members = nil, req.Add[0].Members
	if got := testkit.Must(s.counters.AddCounters(t.Context(), req))(t); len(got.Values) != 256 || got.Values[255] != "256" {
		t.Errorf("%v", got)
	}
}

// Reading needs the scope read, and counting the scope use. Such calls are neither limited
// nor logged: applications make them all the time.
func TestCounterTokens(t *testing.T) {
	for _, m := range pb.Counters_ServiceDesc.Methods {
		if name := "/" + pb.Counters_ServiceDesc.ServiceName + "/" + m.MethodName; counterCalls[name].call == nil {
			t.Errorf("%s is not tried without a token; add it to the list", name)
		}
	}
	s := newPipe(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	for _, c := range counterCalls {
		want(t, c.call(t.Context(), s), fault.TokenRequired, "authorization: Bearer")
		if err := c.call(as(t.Context(), readerToken), s); c.changes {
			want(t, err, fault.Forbidden, "bob", "use")
		} else if err != nil {
			t.Error(err)
		}
		for range 300 { // more than the management allows
			if err := c.call(as(t.Context(), userToken), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	want(t, counterCalls[pb.Counters_GetCounters_FullMethodName].call(as(t.Context(), "wrong-but-long-enough-for-one"), s), fault.InvalidToken)
	if log := s.log.String(); log != "" {
		t.Errorf("the log has %s", log)
	}
}

// goneCounters is a store of counters that does not answer.
type goneCounters struct{ counter.Store }

func (goneCounters) Add(context.Context, ...counter.Delta) ([]counter.Amount, error) {
	return nil, counter.ErrUnavailable
}

func (goneCounters) Get(context.Context, ...counter.Key) ([]counter.Amount, error) {
	return nil, counter.ErrUnavailable
}

func TestCountersAreFull(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Counters: countermemory.New(countermemory.Options{MaxEntries: 1})}})
	begin := time.Now()
	add := func(name string) error {
		_, err := s.counters.AddCounters(t.Context(), &pb.AddCountersRequest{Add: []*pb.CounterDelta{{Key: &pb.CounterKey{Name: name}}}})
		return err
	}
	for range 20 {
		if err := add("a"); err != nil {
			t.Fatal(err)
		}
		want(t, add("b"), fault.CountersFull, "raise --counter-capacity")
	}
	if lines := strings.Count(s.log.String(), "counters full"); lines == 0 || lines > 2+int(time.Since(begin).Seconds()) {
		t.Errorf("the log has %d lines", lines)
	}
}

func TestCountersAreGone(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Counters: goneCounters{countermemory.New(countermemory.Options{})}}})
	begin := time.Now()
	for range 20 {
		p := want(t, counterCalls[pb.Counters_AddCounters_FullMethodName].call(t.Context(), s), fault.StoreUnavailable, "may or may not")
		if p.retry.GetRetryDelay().AsDuration() != fault.Outage || p.id == "" {
			t.Fatalf("%+v", p)
		}
		want(t, counterCalls[pb.Counters_GetCounters_FullMethodName].call(t.Context(), s), fault.StoreUnavailable, "try again soon")
	}
	if lines := strings.Count(s.log.String(), "store of counters unavailable"); lines == 0 || lines > 2+int(time.Since(begin).Seconds()) {
		t.Errorf("the log has %d lines", lines)
	}
}
