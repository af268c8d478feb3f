package archive

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

// Ratios are those of whole holds, and those that matter most are exact.
func TestHoldRatio(t *testing.T) {
	for _, c := range []struct {
		reserved, used int64
		least, most    float64
	}{
		{100, 100, 1, 1}, {100, 50, 0.5, 0.5}, {100, 200, 2, 2}, {100, 0, 0, 0}, {10_000, 1, 0, 0},
		{100, 31, 0.31, 0.31 * 9 / 8}, {3, 100, 33.3, 33.4 * 9 / 8}, {1, 1 << 53, 1 << 20, 1 << 62},
	} {
		var h Holds
		h.Settle(c.reserved, c.used, 0)
		if got := h.Ratio(0.5); got < c.least || got > c.most {
			t.Errorf("%d of %d is %v, want %v to %v", c.used, c.reserved, got, c.least, c.most)
		}
	}
	var h Holds
	h.Settle(0, 5, 0) // nothing was reserved: no ratio
	for i := range int64(100) {
		h.Settle(100, i+1, 0)
	}
	for q, most := range map[float64]float64{0.5: 0.5 * 9 / 8, 0.9: 0.9 * 9 / 8, 0.99: 1} {
		if got := h.Ratio(q); got < q || got > most {
			t.Errorf("%v: %v", q, got)
		}
	}
	if h.Settled != 101 || h.Reserved != 10_000 || h.Used != 5055 || h.Overruns != 1 {
		t.Errorf("%+v", h)
	}
}

// Whatever clients say that they have used, a frame can be read again.
func TestHoldUnitsAreBounded(t *testing.T) {
	var f, sum Frame
	for range 3 {
		f.Hold("a").Settle(1<<53, math.MaxInt64>>1, 1<<53)
		sum.Merge(&f)
	}
	got, err := Decode(sum.Append(nil))
	if err != nil || got.Hold("a").Used != maxExact || got.Hold("a").Settled != 6 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Beyond the bound, the rules with the fewest holds count together.
func TestTrimHolds(t *testing.T) {
	var f Frame
	for i := range MaxHolds + 10 {
		f.Hold(fmt.Sprint("rule", i)).Opened = int64(i + 1)
	}
	f.Trim()
	if len(f.Holds) > MaxHolds || f.Hold(Other).Opened != 66 || f.Hold("rule11").Opened != 12 {
		t.Errorf("%d, %+v", len(f.Holds), f.Hold(Other))
	}
	before := f.Weight()
	f.Hold("x").Settle(1, 1, 0)
	if f.Weight() <= before || (&Frame{Holds: f.Holds}).Empty() {
		t.Error("a settled hold weighs nothing")
	}
}

// Two instances, or two seconds, are as good as one.
func TestInFlightMerges(t *testing.T) {
	var one, a, b Frame
	for i := range 100 {
		held := time.Duration(i+1) * time.Millisecond
		part := &a
		if i%3 == 0 {
			part = &b
		}
		for _, f := range []*Frame{&one, part} {
			f.Flight("api").Hold(held)
			f.Flight("api").Use(held)
			f.Flight("api").Highest = max(f.Flight("api").Highest, int64(i))
		}
	}
	var sum Frame
	for _, f := range []*Frame{&a, &b} {
		read, err := Decode(f.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		sum.Merge(read)
	}
	if !reflect.DeepEqual(sum.InFlight, one.InFlight) {
		t.Errorf("%+v, want %+v", sum.InFlight["api"], one.InFlight["api"])
	}
	in := sum.Flight("api")
	if in.Mean(10*time.Second) != 0.505 || in.Highest != 99 || in.Ended() != 100 || in.MeanHeld() != 50500*time.Microsecond {
		t.Errorf("%+v: %v, %v", in, in.Mean(10*time.Second), in.MeanHeld())
	}
	for q, exact := range map[float64]time.Duration{0.5: 50 * time.Millisecond, 0.99: 99 * time.Millisecond} {
		if got := in.Held(q); got < exact || got > exact*9/8 {
			t.Errorf("%v: %v", q, got)
		}
	}
	if got := (&InFlight{}).Held(0.5); got != 0 {
		t.Error(got)
	}
	if f := (&Frame{InFlight: sum.InFlight}); f.Empty() || f.Weight() == 0 {
		t.Error("requests in flight weigh nothing")
	}
}

// A frame without requests in flight is written as before.
func TestInFlightVersion(t *testing.T) {
	f := Frame{Requests: Counts{Allowed: 1}}
	if v := f.Append(nil)[0]; v != 2 {
		t.Error(v)
	}
	f.Flight("api").Highest = 1
	if v := f.Append(nil)[0]; v != 6 {
		t.Error(v)
	}
}

// An instance that ends what another has begun is busy for less than no time, and both together
// for as long as it was.
func TestInFlightBelowZero(t *testing.T) {
	var one, other, sum Frame
	one.Flight("api").Use(10 * time.Second)
	other.Flight("api").Use(-7 * time.Second)
	if v := other.Append(nil)[0]; v != 7 || other.Weight() == 0 || other.Empty() {
		t.Errorf("version %d, weight %d", v, other.Weight())
	}
	for _, f := range []*Frame{&one, &other} {
		f.Priorities.Low.Allowed = 1 // so that both are written alike
		read, err := Decode(f.Append(nil))
		if err != nil || read.Flight("api").Busy != f.Flight("api").Busy {
			t.Fatalf("%+v, %v", read, err)
		}
		sum.Merge(read)
	}
	if got := sum.Flight("api").Mean(time.Second); got != 3 {
		t.Errorf("%v in flight", got)
	}
	if got := other.Flight("api").Mean(time.Second); got != 0 {
		t.Errorf("%v in flight", got)
	}
	other.Flight("api").Use(-maxExact * time.Microsecond)
	if _, err := Decode(other.Append(nil)); err != nil || other.Flight("api").Busy != -maxExact {
		t.Errorf("%v, %v", other.Flight("api").Busy, err)
	}
}

// However long requests are in flight, a frame can be read again.
func TestInFlightIsBounded(t *testing.T) {
	var f, sum Frame
	for range 2000 {
		f.Flight("api").Hold(math.MaxInt64)
		f.Flight("api").Use(math.MaxInt64)
	}
	f.Flight("api").Hold(-1)
	f.Flight("api").Use(-1)
	for range 3 {
		sum.Merge(&f)
	}
	got, err := Decode(sum.Append(nil))
	if err != nil || got.Flight("api").Busy != maxExact || got.Flight("api").Ended() != 6003 || got.Flight("api").Held(0.9) < 4*time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
}

// Beyond the bound, the rules with the least count together.
func TestTrimInFlight(t *testing.T) {
	var f Frame
	for i := range MaxInFlight + 10 {
		f.Flight(fmt.Sprint("rule", i)).Busy = int64(i + 1)
	}
	f.Trim()
	if len(f.InFlight) > MaxInFlight || f.Flight(Other).Busy != 66 || f.Flight("rule11").Busy != 12 {
		t.Errorf("%d, %+v", len(f.InFlight), f.Flight(Other))
	}
}

// Priorities merge as if one instance had counted them, and survive being written.
func TestPriorities(t *testing.T) {
	var sum Frame
	for i := range int64(5) {
		f := Frame{Requests: Counts{Allowed: 10 + i, Denied: 7, Blocked: 1}}
		f.Priorities.Critical = Counts{Allowed: i}
		f.Priorities.High = Counts{Blocked: 1}
		f.Priorities.Low = Counts{Allowed: 1, Denied: 2 * i}
		read, err := Decode(f.Append(nil))
		if err != nil || !reflect.DeepEqual(read, &f) {
			t.Fatalf("%+v, %v, want %+v", read, err, &f)
		}
		sum.Merge(read)
	}
	want := Priorities{Critical: Counts{Allowed: 10}, High: Counts{Blocked: 5}, Low: Counts{Allowed: 5, Denied: 20}}
	if sum.Priorities != want {
		t.Errorf("%+v, want %+v", sum.Priorities, want)
	}
	if got, want := sum.Priorities.Normal(sum.Requests), (Counts{Allowed: 45, Denied: 15}); got != want || sum.Requests.Allowed != 60 {
		t.Errorf("normal: %+v, want %+v; all: %+v", got, want, sum.Requests)
	}
	if got := sum.Priorities.Normal(Counts{Denied: 19}); got != (Counts{}) {
		t.Errorf("less than nothing: %+v", got)
	}
	if f := (&Frame{Priorities: want}); f.Empty() || f.Weight() != 40 {
		t.Errorf("priorities weigh %d", f.Weight())
	}
}

// A frame in which all requests are normal is written as before.
func TestPriorityVersion(t *testing.T) {
	f := Frame{Requests: Counts{Allowed: 1}}
	if v := f.Append(nil)[0]; v != 2 {
		t.Error(v)
	}
	f.Priorities.Low.Denied = 1
	if v := f.Append(nil)[0]; v != 7 {
		t.Error(v)
	}
}

// What is too large to be kept is as much as can be, in each part and in their sum.
func TestHugeSpending(t *testing.T) {
	m := testkit.Must(NewMemory(Keep{}))(t)
	for i := range int64(3) {
		var f Frame
		for range 9 {
			f.Spender(Spender{Rule: "r", Currency: "usd", Key: "k"}).Add(&Spent{Requests: 1, Units: 1 << 50, Input: 1 << 62, Output: 1})
		}
		testkit.OK(t, m.Add(t.Context(), []Part{{Kind: Spend, Start: 60 * i, ID: string(rune('a' + i)), Revision: 1, Frame: f.Append(nil)}}))
	}
	var file bytes.Buffer
	testkit.OK(t, m.Snapshot(&file))
	testkit.OK(t, testkit.Must(NewMemory(Keep{}))(t).Restore(&file))
}
