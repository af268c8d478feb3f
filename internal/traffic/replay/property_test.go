package replay

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/simulate"
)

// A log of simulated traffic gives the same decisions as the simulation.
func TestReplayIsTheSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("%d/%s burst %d", rapid.IntRange(1, 40).Draw(t, "n"),
			rapid.SampledFrom([]string{"1s", "7s", "1m", "90ms", "13us"}).Draw(t, "period"), rapid.IntRange(1, 60).Draw(t, "burst"))
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range simulate.Patterns() {
			names = append(names, p.Name)
		}
		traffic, err := simulate.ParseTraffic(rapid.SampledFrom(names).Draw(t, "traffic"), limit, rapid.Uint64().Draw(t, "seed"), simulate.MaxRequests)
		if err != nil {
			t.Fatal(err)
		}
		lanes, err := simulate.Lanes(limit, rapid.SampledFrom(simulate.LaneNames()).Draw(t, "algorithm"))
		if err != nil {
			t.Fatal(err)
		}
		want := simulate.Run(limit, lanes, traffic, 60).Lanes[0]

		// The epoch of the simulation is the beginning of some window of ours, and of a
		// sub-window, whose length need not divide that of a window.
		common := limit.Period.Microseconds() * max(1, lanes[0].Limit.Numbers().Width)
		epoch := 1_794_700_800_000_000 / common * common
		var log strings.Builder
		for _, r := range traffic.Requests {
			at := epoch + int64(r.At)
			fmt.Fprintf(&log, "{\"time\":%d.%06d,\"user\":%q}\n", at/1_000_000, at%1_000_000, r.Key)
		}
		r, err := Run(context.Background(), Options{Table: compileLimit(t, lanes[0].Limit.Limit())}, NewLog("log", strings.NewReader(log.String())))
		if err != nil {
			t.Fatal(err)
		}
		if r.Allowed != want.Allowed || r.Denied != want.Denied {
			t.Fatalf("%d allowed, %d denied; the simulation has %d and %d", r.Allowed, r.Denied, want.Allowed, want.Denied)
		}
		if s := r.Rules[0].Suggestions[0]; s.Denied != r.Denied {
			t.Fatalf("the demand says that %d are denied, the replay %d", s.Denied, r.Denied)
		}
	})
}

// However lines are spread over logs, the result is the same.
func TestMerge(t *testing.T) {
	table := example(t, "quickstart.yaml")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "lines")
		parts := make([]strings.Builder, rapid.IntRange(1, 6).Draw(t, "logs"))
		var all strings.Builder
		at := 0.0
		for i := range n {
			// No two at the same time: which of them comes first is not said.
			at += 0.001 + 2*rapid.Float64Range(0, 1).Draw(t, "gap")
			text := fmt.Sprintf("{\"time\":%.3f,\"ip\":\"192.0.2.%d\",\"method\":\"POST\",\"path\":\"/api/login\"}\n", 1_794_700_800+at, i%3)
			all.WriteString(text)
			parts[rapid.IntRange(0, len(parts)-1).Draw(t, "log")].WriteString(text)
		}
		var logs []*Log
		for i := range parts {
			logs = append(logs, NewLog("log", strings.NewReader(parts[i].String())))
		}
		got, err := Run(context.Background(), Options{Table: table}, logs...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Run(context.Background(), Options{Table: table}, NewLog("log", strings.NewReader(all.String())))
		if err != nil {
			t.Fatal(err)
		}
		got.Logs, want.Logs = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n%+v", got, want)
		}
	})
}

// Whatever is out of order by no more than the bound comes out in order, and what
// came at the same time as it came.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.Int64Range(0, 50).Draw(t, "bound")
		o := sorter{bound: bound}
		var entries []Entry
		newest := int64(0)
		for i := range rapid.IntRange(0, 200).Draw(t, "n") {
			newest += rapid.Int64Range(0, 20).Draw(t, "ahead")
			entries = append(entries, Entry{At: newest - rapid.Int64Range(0, bound).Draw(t, "behind"), User: fmt.Sprint(i)})
		}
		var out []*Entry
		for i := range entries {
			o.push(held{entry: &entries[i]})
			for h, ok := o.pop(false); ok; h, ok = o.pop(false) {
				out = append(out, h.entry)
			}
		}
		for h, ok := o.pop(true); ok; h, ok = o.pop(true) {
			out = append(out, h.entry)
		}
		want := make([]*Entry, len(entries))
		for i := range entries {
			want[i] = &entries[i]
		}
		slices.SortStableFunc(want, func(a, b *Entry) int { return int(a.At - b.At) })
		if !slices.Equal(out, want) || o.len() != 0 {
			t.Fatalf("%d of %d came out, or out of order", len(out), len(want))
		}
	})
}

// Putting slices together loses nothing, and each request stays in its time.
func TestSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSeries()
		now, n, denied := int64(1_794_700_800_123_456), int64(0), int64(0)
		var times []int64
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			now += rapid.Int64Range(0, int64(rapid.SampledFrom([]time.Duration{1, time.Second, time.Hour, 30 * 24 * time.Hour}).Draw(t, "scale"))).Draw(t, "gap") / 1000
			no := rapid.Bool().Draw(t, "denied")
			s.countRequest(now, no)
			times = append(times, now)
			n++
			if no {
				denied++
				s.countRuleDenial(7)
			}
		}
		for _, columns := range []int{maxSlices, 60, 10} {
			f := s.fitted(columns)
			if len(f.offered) > columns || sum(f.offered) != n || sum(f.denied) != denied || sum(f.rules[7]) != denied {
				t.Fatalf("%d columns: %+v", columns, f)
			}
			want := make([]int64, len(f.offered))
			for _, at := range times {
				want[(at-f.begin)/f.length()]++
			}
			if !slices.Equal(f.offered, want) {
				t.Fatalf("%v, want %v", f.offered, want)
			}
		}
	})
}

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// The true count is within the bounds of top, and no client with more than the smallest
// count is missing.
func TestTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(1, 20).Draw(t, "room")
		tops, exact := newTop(room), make(map[topKey]int64)
		for range rapid.IntRange(0, 400).Draw(t, "n") {
			key := topKey{rapid.IntRange(0, 1).Draw(t, "rule"), fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "a") * rapid.IntRange(0, 30).Draw(t, "client"))}
			tops.countDenial(key.rule, key.client, 1)
			exact[key]++
		}
		listed := tops.most(len(exact))
		for _, l := range listed {
			if n := exact[l.topKey]; n > l.count || n < l.count-l.tooHigh {
				t.Fatalf("%+v is %d", l, n)
			}
			delete(exact, l.topKey)
		}
		if len(listed) > room || len(exact) > 0 && len(listed) < room {
			t.Fatalf("%d listed of %d", len(listed), room)
		}
		for key, n := range exact {
			if n > listed[len(listed)-1].count {
				t.Fatalf("%v with %d is missing", key, n)
			}
		}
	})
}
