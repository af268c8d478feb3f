package grpcapi

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// counters is the service Counters.
type counters struct {
	pb.UnimplementedCountersServer
	s *Server
}

// AddCounters implements pb.CountersServer.
func (c counters) AddCounters(ctx context.Context, req *pb.AddCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, trust.Use, "add", req.GetAdd(), readDelta, func(ctx context.Context, deltas []counter.Delta) (*pb.CountersResponse, error) {
		return valued(c.s.options.Counters.Add(ctx, deltas...))
	})
}

// SetCounters implements pb.CountersServer.
func (c counters) SetCounters(ctx context.Context, req *pb.SetCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, trust.Use, "set", req.GetSet(), readSetting, func(ctx context.Context, settings []counter.Setting) (*pb.CountersResponse, error) {
		return valued(c.s.options.Counters.Set(ctx, settings...))
	})
}

// ResetCounters implements pb.CountersServer.
func (c counters) ResetCounters(ctx context.Context, req *pb.ResetCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, trust.Use, "keys", req.GetKeys(), readKey, func(ctx context.Context, keys []counter.Key) (*pb.CountersResponse, error) {
		return valued(c.s.options.Counters.Reset(ctx, keys...))
	})
}

// GetCounters implements pb.CountersServer.
func (c counters) GetCounters(ctx context.Context, req *pb.GetCountersRequest) (*pb.CountersResponse, error) {
	return counting(ctx, c.s, trust.Read, "keys", req.GetKeys(), readKey, func(ctx context.Context, keys []counter.Key) (*pb.CountersResponse, error) {
		return valued(c.s.options.Counters.Get(ctx, keys...))
	})
}

// GetCounterHistory implements pb.CountersServer.
func (c counters) GetCounterHistory(ctx context.Context, req *pb.GetCounterHistoryRequest) (*pb.GetCounterHistoryResponse, error) {
	return counting(ctx, c.s, trust.Read, "keys", req.GetKeys(), readKey, func(ctx context.Context, keys []counter.Key) (*pb.GetCounterHistoryResponse, error) {
		series, err := c.s.options.Counters.History(ctx, lastWindows(req.GetN(), keys), keys...)
		return &pb.GetCounterHistoryResponse{Counters: made(series, func(points []counter.Point) *pb.CounterHistory {
			return &pb.CounterHistory{Points: made(points, func(p counter.Point) *pb.CounterPoint {
				return &pb.CounterPoint{Start: instant(p.Start), Value: p.Amount.String()}
			})}
		})}, err
	})
}

// Observe implements pb.CountersServer.
func (c counters) Observe(ctx context.Context, req *pb.ObserveRequest) (*pb.ObserveResponse, error) {
	return counting(ctx, c.s, trust.Use, "observe", req.GetObserve(), readSample, func(ctx context.Context, samples []counter.Sample) (*pb.ObserveResponse, error) {
		return &pb.ObserveResponse{}, c.s.options.Counters.Observe(ctx, samples...)
	})
}

// GetDistributions implements pb.CountersServer.
func (c counters) GetDistributions(ctx context.Context, req *pb.GetDistributionsRequest) (*pb.GetDistributionsResponse, error) {
	return counting(ctx, c.s, trust.Read, "keys", req.GetKeys(), readKey, func(ctx context.Context, keys []counter.Key) (*pb.GetDistributionsResponse, error) {
		series, err := c.s.options.Counters.Distributions(ctx, lastWindows(req.GetN(), keys), keys...)
		return &pb.GetDistributionsResponse{Distributions: made(series, func(points []counter.DistributionPoint) *pb.Distribution {
			windows, merged := counter.Summarize(points)
			return &pb.Distribution{Points: made(windows, percentiles), Merged: percentiles(merged)}
		})}, err
	})
}

// counting answers a call about a list of counters, if the caller may make it.
func counting[M, T, A any](ctx context.Context, s *Server, needs trust.Rights, list string, all []M, read func(M, func(string) string) (T, error), do func(context.Context, []T) (*A, error)) (*A, error) {
	return guarded(ctx, s, manage.Visit{Needs: needs, Uncounted: true}, func(c *call) (answer *A, err error) {
		named, err := fault.Each(list, all, counter.MaxBatch, read)
		if err == nil {
			answer, err = do(c, named)
		}
		if err != nil {
			return nil, s.trouble(c).Store("store of counters unavailable", needs == trust.Use, err, &s.warned, time.Now())
		}
		return answer, nil
	})
}

// made makes a list of another.
func made[T, M any](all []T, one func(T) M) []M {
	to := make([]M, len(all))
	for i, t := range all {
		to[i] = one(t)
	}
	return to
}

func readKey(k *pb.CounterKey, field func(string) string) (counter.Key, error) {
	window := k.GetWindow()
	if pb.Window_name[int32(window)] == "" {
		return counter.Key{}, fault.Field(field("window"), "%d is unknown; use a value of the enum Window.", window)
	}
	return manage.CounterName{
		Name: k.GetName(), Group: k.GetGroup(), Window: counter.Window(window), Zone: k.GetZone(), Distinct: k.GetDistinct(),
	}.Key(field)
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
	return delta, manage.CheckDelta(delta, field)
}

func readSetting(s *pb.CounterSetting, field func(string) string) (counter.Setting, error) {
	key, err := readKey(s.GetKey(), inKey(field))
	if err != nil {
		return counter.Setting{}, err
	}
	if s.GetValue() == "" {
		return counter.Setting{}, fault.Field(field("value"), "required; send the new value.")
	}
	to, err := readAmount(s.GetValue(), field("value"))
	if err != nil {
		return counter.Setting{}, err
	}
	setting := counter.Setting{Key: key, To: to}
	return setting, manage.CheckSetting(setting, field)
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
			return sample, fault.Field(where, "%v is not a value; send numbers from 0 to 9e12.", v)
		}
	}
	return sample, manage.CheckSample(sample, field)
}

func readAmount(text, field string) (counter.Amount, error) {
	amount, err := counter.ParseAmount(text)
	return amount, manage.Invalid(err, func(string) string { return field })
}

// lastWindows is how many windows of keys are read.
func lastWindows(n int32, keys []counter.Key) int {
	if n == 0 {
		return manage.DefaultWindows(keys)
	}
	return int(n)
}

func valued(amounts []counter.Amount, err error) (*pb.CountersResponse, error) {
	return &pb.CountersResponse{Values: made(amounts, counter.Amount.String)}, err
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
