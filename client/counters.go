package client

import (
	"cmp"
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Counters counts in the service. Its methods are those of a [counter.Store], and so are
// their errors: a *weir.InvalidError, counter.ErrRange, counter.ErrFull, and
// counter.ErrUnavailable, after which a change may have been made. Names must be UTF-8.
//
// If the service has tokens, reading needs one with the scope read, and changing one with
// the scope use. If counters fail, checks are still made: only checks open the circuit
// breaker. While it is open, counters are unavailable, too.
type Counters struct{ client *Client }

// Counters returns the counters of the service.
func (c *Client) Counters() Counters { return Counters{c} }

// Distribution is the figures of a distribution.
type Distribution struct {
	Windows []counter.Summary // earliest first, current window last
	Merged  counter.Summary   // of all these windows together
}

// Add changes counters and returns their new values. All are changed, or none.
func (c Counters) Add(ctx context.Context, deltas ...counter.Delta) ([]counter.Amount, error) {
	if err := counter.ValidateAdd(deltas); err != nil {
		return nil, err
	}
	add, err := each(deltas, func(d counter.Delta) (*pb.CounterDelta, error) {
		key, err := message(d.Key)
		m := &pb.CounterDelta{Key: key, Members: d.Members}
		if !d.Key.Distinct {
			m.By = d.By.String() // 0 is not the default
		}
		return m, cmp.Or(checkText("member", d.Members...), err)
	})
	if err != nil {
		return nil, err
	}
	return values(ctx, c, len(deltas), &pb.AddCountersRequest{Add: add}, c.client.counters.AddCounters)
}

// Set gives counters new values and returns their previous ones. A repeated call changes
// nothing more.
func (c Counters) Set(ctx context.Context, settings ...counter.Setting) ([]counter.Amount, error) {
	if err := counter.ValidateSet(settings); err != nil {
		return nil, err
	}
	set, err := each(settings, func(s counter.Setting) (*pb.CounterSetting, error) {
		key, err := message(s.Key)
		return &pb.CounterSetting{Key: key, Value: s.To.String()}, err
	})
	if err != nil {
		return nil, err
	}
	return values(ctx, c, len(settings), &pb.SetCountersRequest{Set: set}, c.client.counters.SetCounters)
}

// Reset sets counters to 0 and returns their previous values.
func (c Counters) Reset(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	named, err := messages(keys)
	if err != nil {
		return nil, err
	}
	return values(ctx, c, len(keys), &pb.ResetCountersRequest{Keys: named}, c.client.counters.ResetCounters)
}

// Get returns the values of counters. A new counter has 0.
func (c Counters) Get(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	named, err := messages(keys)
	if err != nil {
		return nil, err
	}
	return values(ctx, c, len(keys), &pb.GetCountersRequest{Keys: named}, c.client.counters.GetCounters)
}

// History returns the last n windows of each counter, earliest first, current window last.
func (c Counters) History(ctx context.Context, n int, keys ...counter.Key) ([][]counter.Point, error) {
	named, err := asked(n, counter.MaxHistory, keys)
	if err != nil {
		return nil, err
	}
	answer, err := ask(ctx, c, &pb.GetCounterHistoryRequest{Keys: named, N: int32(n)}, c.client.counters.GetCounterHistory)
	if err != nil {
		return nil, err
	}
	if err := complete(len(keys), len(answer.GetCounters())); err != nil {
		return nil, err
	}
	series := make([][]counter.Point, len(keys))
	for i, track := range answer.GetCounters() {
		series[i], err = each(track.GetPoints(), func(p *pb.CounterPoint) (counter.Point, error) {
			amount, err := amountOf(p.GetValue())
			return counter.Point{Start: start(p.GetStart(), keys[i].Zone), Amount: amount}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return series, nil
}

// Observe adds values to distributions. A value above 9 × 10^9 may be rounded in its last
// decimals.
func (c Counters) Observe(ctx context.Context, samples ...counter.Sample) error {
	if err := counter.ValidateObserve(samples); err != nil {
		return err
	}
	observe, err := each(samples, func(s counter.Sample) (*pb.Sample, error) {
		key, err := message(s.Key)
		m := &pb.Sample{Key: key}
		for _, v := range s.Values {
			m.Values = append(m.Values, v.Float64())
		}
		return m, err
	})
	if err == nil {
		_, err = ask(ctx, c, &pb.ObserveRequest{Observe: observe}, c.client.counters.Observe)
	}
	return err
}

// Distributions returns the figures of the last n windows of each distribution. Unlike a
// counter.Store, the service sends percentiles, and not the buckets that others could be
// computed from.
func (c Counters) Distributions(ctx context.Context, n int, keys ...counter.Key) ([]Distribution, error) {
	named, err := asked(n, counter.MaxDistributions, keys)
	if err != nil {
		return nil, err
	}
	answer, err := ask(ctx, c, &pb.GetDistributionsRequest{Keys: named, N: int32(n)}, c.client.counters.GetDistributions)
	if err != nil {
		return nil, err
	}
	if err := complete(len(keys), len(answer.GetDistributions())); err != nil {
		return nil, err
	}
	all := make([]Distribution, len(keys))
	for i, d := range answer.GetDistributions() {
		of := func(p *pb.Percentiles) (counter.Summary, error) { return summaryOf(p, keys[i].Zone) }
		if all[i].Windows, err = each(d.GetPoints(), of); err == nil {
			all[i].Merged, err = of(d.GetMerged())
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ask makes a call about counters. The breaker is not told, because the store of counters may
// be unavailable while checks are answered.
func ask[Q, A any](ctx context.Context, c Counters, req Q, call func(context.Context, Q, ...grpc.CallOption) (A, error)) (answer A, err error) {
	away, err := c.client.call(ctx, func(ctx context.Context) (err error) {
		answer, err = call(ctx, req)
		return err
	})
	code := status.Code(err)
	switch {
	case err == nil && away == nil:
		return answer, nil
	case isOurs(err):
		return answer, err
	case c.client.breaker.ctx.Err() != nil:
		return answer, ErrClosed
	case code == codes.OutOfRange:
		return answer, counter.ErrRange
	case code == codes.FailedPrecondition: // of counters, no other error has this code
		return answer, counter.ErrFull
	case away != nil:
		return answer, fmt.Errorf("%w: %w", counter.ErrUnavailable, away)
	case code == codes.Unavailable || code == codes.DeadlineExceeded:
		return answer, fmt.Errorf("%w: %w", counter.ErrUnavailable, awayBecause(err))
	}
	return answer, fmt.Errorf("client: %w", err)
}

// values makes a call that returns an amount for each of n counters.
func values[Q any](ctx context.Context, c Counters, n int, req Q, call func(context.Context, Q, ...grpc.CallOption) (*pb.CountersResponse, error)) ([]counter.Amount, error) {
	answer, err := ask(ctx, c, req, call)
	if err != nil {
		return nil, err
	}
	if err := complete(n, len(answer.GetValues())); err != nil {
		return nil, err
	}
	return each(answer.GetValues(), amountOf)
}

// each makes a list of another, or stops at the first error.
func each[T, M any](all []T, one func(T) (M, error)) ([]M, error) {
	made := make([]M, len(all))
	for i, t := range all {
		var err error
		if made[i], err = one(t); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func complete(asked, answered int) error {
	if asked != answered {
		return fmt.Errorf("client: %d counters have %d answers; check what answers at this address", asked, answered)
	}
	return nil
}

// asked are keys whose last n windows can be asked for. The service knows how many are kept.
func asked(n, most int, keys []counter.Key) ([]*pb.CounterKey, error) {
	if n < 1 || n > most {
		return nil, &weir.InvalidError{Field: "n", Reason: fmt.Sprintf("%d is out of range; request 1 to %d", n, most)}
	}
	return messages(keys)
}

func messages(keys []counter.Key) ([]*pb.CounterKey, error) {
	if err := counter.ValidateKeys(keys); err != nil {
		return nil, err
	}
	return each(keys, message)
}

// message is a key as it goes over the wire.
func message(k counter.Key) (*pb.CounterKey, error) {
	m := &pb.CounterKey{Name: k.Name, Group: k.Group, Window: pb.Window(k.Window), Distinct: k.Distinct}
	if k.Zone != nil && k.Zone != time.UTC {
		m.Zone = k.Zone.String()
	}
	if err := checkText("name", k.Name); err != nil {
		return nil, err
	}
	return m, checkText("group", k.Group)
}

// checkText finds what cannot be sent. The library would call it an error of the service.
func checkText(field string, all ...string) error {
	for _, text := range all {
		if !utf8.ValidString(text) {
			return &weir.InvalidError{Field: field, Reason: "it is not valid UTF-8, which the service requires; encode it"}
		}
	}
	return nil
}

func start(at *timestamppb.Timestamp, zone *time.Location) time.Time {
	if at == nil || zone == nil {
		return instant(at)
	}
	return at.AsTime().In(zone)
}

// amountOf reads an amount; what is absent is 0.
func amountOf(text string) (counter.Amount, error) {
	if text == "" {
		return 0, nil
	}
	amount, err := counter.ParseAmount(text)
	if err != nil {
		return 0, fmt.Errorf("client: the answer has %.40q, which is not an amount; check what answers at this address", text)
	}
	return amount, nil
}

func summaryOf(p *pb.Percentiles, zone *time.Location) (counter.Summary, error) {
	s := counter.Summary{Start: start(p.GetStart(), zone), Count: p.GetCount()}
	for _, figure := range []struct {
		text string
		to   *counter.Amount
	}{
		{p.GetSum(), &s.Sum}, {p.GetMean(), &s.Mean}, {p.GetMin(), &s.Min}, {p.GetMax(), &s.Max},
		{p.GetP50(), &s.P50}, {p.GetP95(), &s.P95}, {p.GetP99(), &s.P99},
	} {
		amount, err := amountOf(figure.text)
		if err != nil {
			return counter.Summary{}, err
		}
		*figure.to = amount
	}
	return s, nil
}
