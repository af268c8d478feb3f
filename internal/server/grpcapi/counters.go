package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/manage"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// counters is the service Counters.
type counters struct {
	pb.UnimplementedCountersServer
	s *Server
}

// AddCounters implements pb.CountersServer.
func (c counters) AddCounters(ctx context.Context, req *pb.AddCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, pb.Counters_AddCounters_FullMethodName, bearer.Use, func(ctx context.Context, store counter.Store) (*pb.CountersResponse, error) {
		deltas, err := each("add", req.GetAdd(), readDelta)
		if err != nil {
			return nil, err
		}
		return valued(store.Add(ctx, deltas...))
	})
}

// SetCounters implements pb.CountersServer.
func (c counters) SetCounters(ctx context.Context, req *pb.SetCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, pb.Counters_SetCounters_FullMethodName, bearer.Use, func(ctx context.Context, store counter.Store) (*pb.CountersResponse, error) {
		settings, err := each("set", req.GetSet(), readSetting)
		if err != nil {
			return nil, err
		}
		return valued(store.Set(ctx, settings...))
	})
}

// ResetCounters implements pb.CountersServer.
func (c counters) ResetCounters(ctx context.Context, req *pb.ResetCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, pb.Counters_ResetCounters_FullMethodName, bearer.Use, func(ctx context.Context, store counter.Store) (*pb.CountersResponse, error) {
		keys, err := each("keys", req.GetKeys(), readKey)
		if err != nil {
			return nil, err
		}
		return valued(store.Reset(ctx, keys...))
	})
}

// GetCounters implements pb.CountersServer.
func (c counters) GetCounters(ctx context.Context, req *pb.GetCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, pb.Counters_GetCounters_FullMethodName, bearer.Read, func(ctx context.Context, store counter.Store) (*pb.CountersResponse, error) {
		keys, err := each("keys", req.GetKeys(), readKey)
		if err != nil {
			return nil, err
		}
		return valued(store.Get(ctx, keys...))
	})
}

// GetCounterHistory implements pb.CountersServer.
func (c counters) GetCounterHistory(ctx context.Context, req *pb.GetCounterHistoryRequest) (*pb.GetCounterHistoryResponse, error) {
	return counting(ctx, c.s, pb.Counters_GetCounterHistory_FullMethodName, bearer.Read, func(ctx context.Context, store counter.Store) (*pb.GetCounterHistoryResponse, error) {
		keys, err := each("keys", req.GetKeys(), readKey)
		if err != nil {
			return nil, err
		}
		series, err := store.History(ctx, lastWindows(req.GetN(), keys), keys...)
		answer := &pb.GetCounterHistoryResponse{Counters: make([]*pb.CounterHistory, len(series))}
		for i, points := range series {
			answer.Counters[i] = &pb.CounterHistory{Points: make([]*pb.CounterPoint, len(points))}
			for j, p := range points {
				answer.Counters[i].Points[j] = &pb.CounterPoint{Start: instant(p.Start), Value: p.Amount.String()}
			}
		}
		return answer, err
	})
}

// Observe implements pb.CountersServer.
func (c counters) Observe(ctx context.Context, req *pb.ObserveRequest) (*pb.ObserveResponse, error) {
	return counting(ctx, c.s, pb.Counters_Observe_FullMethodName, bearer.Use, func(ctx context.Context, store counter.Store) (*pb.ObserveResponse, error) {
		samples, err := each("observe", req.GetObserve(), readSample)
		if err != nil {
			return nil, err
		}
		return &pb.ObserveResponse{}, store.Observe(ctx, samples...)
	})
}

// GetDistributions implements pb.CountersServer.
func (c counters) GetDistributions(ctx context.Context, req *pb.GetDistributionsRequest) (*pb.GetDistributionsResponse, error) {
	return counting(ctx, c.s, pb.Counters_GetDistributions_FullMethodName, bearer.Read, func(ctx context.Context, store counter.Store) (*pb.GetDistributionsResponse, error) {
		keys, err := each("keys", req.GetKeys(), readKey)
		if err != nil {
			return nil, err
		}
		series, err := store.Distributions(ctx, lastWindows(req.GetN(), keys), keys...)
		answer := &pb.GetDistributionsResponse{Distributions: make([]*pb.Distribution, len(series))}
		for i, points := range series {
			windows, merged := counter.Summarize(points)
			answer.Distributions[i] = &pb.Distribution{Points: make([]*pb.Percentiles, len(windows)), Merged: percentiles(merged)}
			for j, summary := range windows {
				answer.Distributions[i].Points[j] = percentiles(summary)
			}
		}
		return answer, err
	})
}

// counting answers a call about counters, if the caller may make it.
func counting[A any](ctx context.Context, s *Server, method string, needs bearer.Rights, do func(context.Context, counter.Store) (*A, error)) (*A, error) {
	return guarded(ctx, s, method, manage.Visit{Needs: needs, Uncounted: true}, func(c *call) (*A, error) {
		answer, err := do(c, s.options.Counters)
		if err != nil {
			return nil, s.counterTrouble(c, err, needs == bearer.Use)
		}
		return answer, nil
	})
}

// warn logs an error of the store. Clients can cause one at any rate, so it is logged at most
// once per second.
func (s *Server) warn(c *call, message string, err error) {
	now := time.Now().Unix()
	if before := s.warned.Load(); before != now && s.warned.CompareAndSwap(before, now) {
		s.options.Logger.Warn(message, "method", c.method, "request_id", c.id, "error", err)
	}
}

// counterTrouble is why a call about counters failed.
func (s *Server) counterTrouble(c *call, err error, changes bool) error {
	if errors.Is(err, counter.ErrFull) {
		s.warn(c, "counters full; new names are rejected", err)
	}
	switch {
	case calls.Of(err) != nil:
		return err
	case c.Err() != nil:
		return c.Err()
	}
	s.warn(c, "store of counters unavailable", err)
	return fault.Store(changes)
}

// each reads a list of a call. An error names the place in the list.
func each[M, T any](list string, all []M, read func(M, func(string) string) (T, error)) ([]T, error) {
	if err := fault.Length(list, len(all), counter.MaxBatch); err != nil {
		return nil, err
	}
	found := make([]T, len(all))
	for i, m := range all {
		var err error
		if found[i], err = read(m, manage.Within(list, i)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func readKey(k *pb.CounterKey, field func(string) string) (counter.Key, error) {
	window := k.GetWindow()
	if pb.Window_name[int32(window)] == "" {
		return counter.Key{}, fault.BadField.Of("%s: %d is unknown; use a value of the enum Window.", field("window"), window).In(field("window"))
	}
	key, bad := manage.CounterName{
		Name: k.GetName(), Group: k.GetGroup(), Window: counter.Window(window), Zone: k.GetZone(), Distinct: k.GetDistinct(),
	}.Key(field)
	return key, wrong(bad)
}

// inKey is where the key of an object has its fields.
func inKey(field func(string) string) func(string) string {
	return func(name string) string { return field("key." + name) }
}

func readDelta(d *pb.CounterDelta, field func(string) string) (counter.Delta, error) {
	key, err := readKey(d.GetKey(), inKey(field))
	if err != nil {
		return counter.Delta{}, err
	}
	delta := counter.Delta{Key: key, Members: d.GetMembers()}
	if by := d.GetBy(); by != "" {
		if delta.By, err = readAmount(by, field("by")); err != nil {
			return counter.Delta{}, err
		}
	} else if !key.Distinct {
		delta.By = counter.One
	}
	return delta, wrong(manage.CheckDelta(delta, field))
}

func readSetting(s *pb.CounterSetting, field func(string) string) (counter.Setting, error) {
	key, err := readKey(s.GetKey(), inKey(field))
	if err != nil {
		return counter.Setting{}, err
	}
	if s.GetValue() == "" {
		return counter.Setting{}, fault.BadField.Of("%s: required; send the new value.", field("value")).In(field("value"))
	}
	to, err := readAmount(s.GetValue(), field("value"))
	if err != nil {
		return counter.Setting{}, err
	}
	setting := counter.Setting{Key: key, To: to}
	return setting, wrong(manage.CheckSetting(setting, field))
}

func readSample(s *pb.Sample, field func(string) string) (counter.Sample, error) {
	key, err := readKey(s.GetKey(), inKey(field))
	if err != nil {
		return counter.Sample{}, err
	}
	sample := counter.Sample{Key: key, Values: make([]counter.Amount, len(s.GetValues()))}
	for i, v := range s.GetValues() {
		if sample.Values[i], err = counter.FromFloat(v); err != nil {
			where := fmt.Sprintf("%s[%d]", field("values"), i)
			return sample, fault.BadField.Of("%s: %v is not a value; send numbers from 0 to 9e12.", where, v).In(where)
		}
	}
	return sample, wrong(manage.CheckSample(sample, field))
}

func readAmount(text, field string) (counter.Amount, error) {
	amount, err := counter.ParseAmount(text)
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return 0, &weir.InvalidError{Field: field, Reason: invalid.Reason}
	}
	return amount, nil
}

// wrong is what is wrong with a field; nil if nothing is.
func wrong(bad *manage.FieldError) error {
	if bad == nil {
		return nil
	}
	return bad
}

// lastWindows is how many windows of keys are read.
func lastWindows(n int32, keys []counter.Key) int {
	if n == 0 {
		return manage.DefaultWindows(keys)
	}
	return int(n)
}

func valued(amounts []counter.Amount, err error) (*pb.CountersResponse, error) {
	answer := &pb.CountersResponse{Values: make([]string, len(amounts))}
	for i, amount := range amounts {
		answer.Values[i] = amount.String()
	}
	return answer, err
}

func percentiles(s counter.Summary) *pb.Percentiles {
	p := &pb.Percentiles{Start: instant(s.Start), Count: s.Count}
	if s.Count > 0 {
		p.Sum, p.Mean, p.Min, p.Max = s.Sum.String(), s.Mean.String(), s.Min.String(), s.Max.String()
		p.P50, p.P95, p.P99 = s.P50.String(), s.P95.String(), s.P99.String()
	}
	return p
}

// instant is a time as it is sent; none if it is zero.
func instant(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
