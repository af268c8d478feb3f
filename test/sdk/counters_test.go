package sdk

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// counting is a call about counters, and what comes of it.
type counting struct {
	Call, Error string
	Counters    []counted // of calls that change
	Names       []string  // of calls that read, with what they have in common
	counted
	N    int
	Want []float64
}

// counted is a counter as the HTTP API has it.
type counted struct {
	Name, Group, Zone string
	Window            counter.Window
	Distinct          bool
	By, Value         *counter.Amount
	Members           []string
	Values            []counter.Amount
}

func (c *counted) key(t *testing.T, name string) counter.Key {
	k := counter.Key{Name: name, Group: c.Group, Window: c.Window, Distinct: c.Distinct}
	if c.Zone != "" {
		k.Zone = testkit.Must(time.LoadLocation(c.Zone))(t)
	}
	return k
}

// The Go client counts as the table says.
func TestCounters(t *testing.T) {
	c, err := client.New(client.Options{Address: weir.grpc, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for i, s := range readTable(t, "go").Counters {
		got, err := s.make(t, c.Counters())
		if code := codeOf(err); code != s.Error {
			t.Fatalf("step %d: %v, which is %q; want %q", i+1, err, code, s.Error)
		}
		if err == nil && !reflect.DeepEqual(got, s.Want) {
			t.Fatalf("step %d: got %v, want %v", i+1, got, s.Want)
		}
	}
}

// make makes the call.
func (s *counting) make(t *testing.T, c client.Counters) (got []float64, err error) {
	var deltas []counter.Delta
	var settings []counter.Setting
	var samples []counter.Sample
	var keys []counter.Key
	for _, one := range s.Counters {
		key := one.key(t, one.Name)
		keys, samples = append(keys, key), append(samples, counter.Sample{Key: key, Values: one.Values})
		delta := counter.Delta{Key: key, Members: one.Members}
		if one.By != nil {
			delta.By = *one.By
		} else if len(one.Members) == 0 {
			delta.By = counter.One
		}
		deltas = append(deltas, delta)
		if one.Value != nil {
			settings = append(settings, counter.Setting{Key: key, To: *one.Value})
		}
	}
	for _, name := range s.Names {
		keys = append(keys, s.key(t, name))
	}
	var amounts []counter.Amount
	switch s.Call {
	case "add":
		amounts, err = c.Add(t.Context(), deltas...)
	case "set":
		amounts, err = c.Set(t.Context(), settings...)
	case "reset":
		amounts, err = c.Reset(t.Context(), keys...)
	case "get":
		amounts, err = c.Get(t.Context(), keys...)
	case "history":
		var series [][]counter.Point
		if series, err = c.History(t.Context(), s.N, keys...); err == nil {
			got = []float64{float64(len(series[0])), 0}
			for _, p := range series[0] {
				got[1] += p.Amount.Float64()
			}
		}
	case "observe":
		return []float64{}, c.Observe(t.Context(), samples...)
	case "distributions":
		var all []client.Distribution
		if all, err = c.Distributions(t.Context(), s.N, keys...); err == nil {
			m := all[0].Merged
			got = []float64{float64(len(all[0].Windows)), float64(m.Count)}
			amounts = []counter.Amount{m.Sum, m.Mean, m.Min, m.Max, m.P50, m.P95, m.P99}
		}
	default:
		t.Fatalf("there is no call %q", s.Call)
	}
	for _, a := range amounts {
		got = append(got, a.Float64())
	}
	return got, err
}
