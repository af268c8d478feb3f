package archive

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/testkit"
)

// durations draws from nanoseconds to minutes, small and large ones alike.
var durations = rapid.Custom(func(t *rapid.T) time.Duration {
	bits := rapid.IntRange(0, 37).Draw(t, "bits")
	return time.Duration(rapid.Int64Range(0, 1<<bits).Draw(t, "duration"))
})

func count(t *rapid.T, name string) int64 { return rapid.Int64Range(0, 1<<40).Draw(t, name) }

var allCounts = rapid.Custom(func(t *rapid.T) Counts {
	return Counts{count(t, "a"), count(t, "b"), count(t, "c"), count(t, "d"), count(t, "e"), count(t, "f"), count(t, "g") * rapid.Int64Range(0, 1).Draw(t, "soft"), count(t, "h") * rapid.Int64Range(0, 1).Draw(t, "unknown")}
})

var sketches = rapid.Custom(func(t *rapid.T) Sketch {
	c := NewCounter(rapid.IntRange(1, 4).Draw(t, "size"))
	for range rapid.IntRange(0, 20).Draw(t, "keys") {
		c.Add(rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "key"), rapid.Int64Range(1, 9).Draw(t, "n"))
	}
	return c.Sketch()
})

func fillHistogram(t *rapid.T, h *Histogram) {
	for range rapid.IntRange(0, 5).Draw(t, "times") {
		h.Record(durations.Draw(t, "took"))
	}
}

var frames = rapid.Custom(func(t *rapid.T) *Frame {
	f := &Frame{Requests: allCounts.Draw(t, "requests")}
	fillHistogram(t, &f.Decision)
	name := rapid.SampledFrom([]string{"", "a", "b", Other, "\x00\xff"})
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		*f.Rule(Line{name.Draw(t, "rule"), name.Draw(t, "tier")}) = allCounts.Draw(t, "counts")
		r := f.Route(name.Draw(t, "route"))
		r.Requests, r.Errors = count(t, "passed"), count(t, "errors")
		fillHistogram(t, &r.Latency)
		d := f.Detail(name.Draw(t, "detail"))
		fillHistogram(t, &d.Decision)
		u := d.Quota(Quota{name.Draw(t, "quota"), count(t, "period")})
		fillHistogram(t, &u.Used)
		u.Denied = count(t, "denied")
		top := f.Ranking(name.Draw(t, "top"))
		h := f.Hold(name.Draw(t, "holds"))
		h.Add(HoldCounts{Opened: count(t, "opened"), Crowded: count(t, "crowded"), Cancelled: count(t, "cancelled"), Charges: count(t, "charges"), Charged: count(t, "charged")})
		h.Settle(count(t, "reserved"), count(t, "used"), count(t, "excess"))
		in := f.Flight(name.Draw(t, "in flight"))
		in.Highest = max(in.Highest, count(t, "highest"))
		in.Hold(durations.Draw(t, "held"))
		in.Use(durations.Draw(t, "busy"))
		f.Warned.Merge(&Warned{N: 1 + count(t, "warned"), List: rapid.SliceOfN(warnings, 0, 3).Draw(t, "warnings")})
		f.Denials = mergeDenials(f.Denials, denials.Draw(t, "denials"))
		if rapid.Bool().Draw(t, "levels") {
			*f.Level(RuleLevel{name.Draw(t, "leveled"), name.Draw(t, "level")}) = count(t, "denied there")
		}
		f.Sampling = rapid.Int64Range(0, 4).Draw(t, "sampling") / 2 * 2 // 1 is not told from 0
		top.Allowed, top.Denied = sketches.Draw(t, "allowed"), sketches.Draw(t, "denied")
	}
	return f
})

func same(a, b *Frame) bool { return slices.Equal(a.Append(nil), b.Append(nil)) }

// What was written is what is read.
func TestEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frames.Draw(t, "frame")
		src := f.Append(nil)
		got, err := Decode(src)
		if err != nil {
			t.Fatal(err)
		}
		if !same(got, f) || got.Sampling != f.Sampling || got.Decision.Count != f.Decision.Count || !reflect.DeepEqual(got.Rules, f.Rules) {
			t.Fatalf("%+v became %+v", f, got)
		}
		cut := rapid.IntRange(0, len(src)-1).Draw(t, "cut")
		if _, err := Decode(src[:cut]); err == nil {
			t.Fatalf("the first %d of %d bytes are a frame", cut, len(src))
		}
		if _, err := Decode(append(src, 0)); err == nil {
			t.Fatal("a frame with something behind it is one")
		}
	})
}

func TestDecodeOtherVersions(t *testing.T) {
	if _, err := Decode([]byte{version + 1, 0, 0}); err == nil {
		t.Error("a later version was read")
	}
	if _, err := Decode(nil); err == nil {
		t.Error("nothing was read")
	}
}

// What was written before there were denials, and before there were clients, is read.
func TestDecodeEarlierVersions(t *testing.T) {
	f := &Frame{Requests: Counts{Denied: 3}}
	f.Ranking("").Denied = Sketch{Entries: []Entry{{"user:alice", 3, 0}}, Total: 3}
	second := f.Append(nil)
	if second[0] != 2 {
		t.Errorf("a frame without denials has version %d", second[0])
	}
	first := append([]byte{1}, second[1:len(second)-2]...) // two empty sets of clients are a byte each
	third := append([]byte{3}, append(second[1:], 0)...)
	for _, src := range [][]byte{first, second, third} {
		if got, err := Decode(src); err != nil || !same(got, f) {
			t.Errorf("version %d is read as %+v, %v", src[0], got, err)
		}
	}
}

// A frame that knows another currency than the dollar is in a version that older instances do not read.
func TestDecodeCurrencies(t *testing.T) {
	f := new(Frame)
	f.Spender(Spender{Rule: "spend", Currency: "usd", Key: "user:alice"}).Units = 7
	f.Spender(Spender{Rule: "spend", Currency: "eur", Key: "user:alice"}).Units = 8
	src := f.Append(nil)
	if got, err := Decode(src); src[0] != 12 || err != nil || !same(got, f) {
		t.Errorf("version %d is read as %+v, %v", src[0], got, err)
	}
}

// A frame without denials because of too many open holds is written as before they were told apart, and what was written then is read.
func TestDecodeBeforeCrowded(t *testing.T) {
	f := &Frame{Denials: []Denial{{At: 1, Key: "user:alice", Shadow: true}}}
	f.Hold("a").Add(HoldCounts{Opened: 7, Excess: 3})
	src := f.Append(nil)
	if got, err := Decode(src); src[0] != 4 || err != nil || !same(got, f) {
		t.Errorf("version %d is read as %+v, %v", src[0], got, err)
	}
	for what, crowd := range map[string]func(*Frame){
		"a hold": func(f *Frame) { f.Hold("a").Crowded = 5 }, "a denial": func(f *Frame) { f.Denials[0].Crowded = true },
	} {
		f := testkit.Must(Decode(src))(t)
		crowd(f)
		crowded := f.Append(nil)
		got, err := Decode(crowded)
		if crowded[0] != 13 || err != nil || !slices.Equal(got.Denials, f.Denials) || got.Hold("a").HoldCounts != f.Hold("a").HoldCounts || got.Hold("a").Excess != 3 {
			t.Errorf("%s: version %d is read as %+v, %v", what, crowded[0], got, err)
		}
	}
}

// A frame without denials by level is written as before there were any, and what was written then is read.
func TestDecodeBeforeLevels(t *testing.T) {
	f := &Frame{Requests: Counts{Denied: 3}}
	f.Spender(Spender{Rule: "spend", Currency: "usd", Key: "user:alice"}).Units = 7
	src := f.Append(nil)
	if got, err := Decode(src); src[0] != 10 || err != nil || !same(got, f) {
		t.Fatalf("version %d is read as %+v, %v", src[0], got, err)
	}
	later := append([]byte{11}, append(src[1:], 0)...)
	if got, err := Decode(later); err != nil || !same(got, f) {
		t.Errorf("%+v, %v", got, err)
	}
	*f.Level(RuleLevel{"spend", "org"}) = 3
	src = f.Append(nil)
	got, err := Decode(src)
	if src[0] != 11 || err != nil || *got.Level(RuleLevel{"spend", "org"}) != 3 {
		t.Errorf("version %d is read as %+v, %v", src[0], got, err)
	}
	got.Merge(f)
	if *got.Level(RuleLevel{"spend", "org"}) != 6 || *f.Level(RuleLevel{"spend", "org"}) != 3 || got.Weight() != f.Weight()*2 || (&Frame{Levels: f.Levels}).Empty() {
		t.Errorf("%+v", got)
	}
}

// Too many levels become one, which has their sum.
func TestTrimLevels(t *testing.T) {
	f, sum := &Frame{}, int64(0)
	for i := range int64(MaxLevels + 100) {
		*f.Level(RuleLevel{fmt.Sprint("rule", i), "org"}) = i + 1
		sum += i + 1
	}
	f.Trim()
	for _, n := range f.Levels {
		sum -= *n
	}
	if len(f.Levels) != MaxLevels || sum != 0 || *f.Level(RuleLevel{Other, Other}) != 101*102/2 {
		t.Errorf("%d levels, %d are missing, others %d", len(f.Levels), sum, *f.Level(RuleLevel{Other, Other}))
	}
}

func FuzzDecode(f *testing.F) {
	one := Frame{Requests: Counts{Allowed: 3, Blocked: 1}}
	one.Decision.Record(time.Millisecond)
	one.Rule(Line{"api", "pro"}).Denied = 7
	one.Ranking("").Allowed = Sketch{Entries: []Entry{{"user:alice", 5, 1}}, Floor: 1, Total: 9}
	f.Add(one.Append(nil))
	one.Denials = []Denial{{At: 1, Rule: "api", Key: "user:alice", Method: "GET", Path: "/a/{id}", Cost: 1, Shadow: true}}
	f.Add(one.Append(nil))
	f.Add([]byte{version, 0, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := Decode(src)
		if err != nil {
			return
		}
		again, err := Decode(got.Append(nil))
		if err != nil || !same(got, again) {
			t.Errorf("%q was read as %+v, and that again as %+v, %v", src, got, again, err)
		}
	})
}

// Frames add up whatever the order, except that rankings are cut.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(frames, 1, 4).Draw(t, "parts")
		var forth, back Frame
		for i := range parts {
			forth.Merge(parts[i])
			back.Merge(parts[len(parts)-1-i])
		}
		if !same(&forth, &back) {
			t.Fatalf("%+v is not %+v", forth, back)
		}
		want := Counts{}
		for _, p := range parts {
			want.Add(p.Requests)
		}
		if forth.Requests != want {
			t.Fatalf("%+v, want %+v", forth.Requests, want)
		}
		before := forth.Append(nil)
		parts[0].Rule(Line{"a", "a"}).Allowed++
		parts[0].Decision.Record(1)
		if !slices.Equal(before, forth.Append(nil)) {
			t.Fatal("a merged frame changes with its parts")
		}
	})
}

// A percentile of merged histograms is one of everything in them.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(durations, 1, 200).Draw(t, "all")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var h, other Histogram
		sum := time.Duration(0)
		for i, d := range all {
			sum += d
			if i%2 == 0 {
				h.Record(d)
			} else {
				other.Record(d)
			}
		}
		h.Merge(&other)
		slices.Sort(all)
		want := all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
		if got := h.Quantile(q); got < want || float64(got) > 1.125*float64(want)+float64(Tick) {
			t.Fatalf("Quantile(%v) = %d, want %d", q, got, want)
		}
		if h.Count != int64(len(all)) || h.Mean() != sum/time.Duration(len(all)) {
			t.Fatalf("%d, on average %v", h.Count, h.Mean())
		}
	})
}

// HistogramSlots are without gaps, each at most an eighth of what is in it.
func TestSlots(t *testing.T) {
	bottom := int64(0)
	for i := range HistogramSlots {
		top := SlotTop(uint8(i))
		if int(HistogramSlot(uint64(bottom))) != i || int(HistogramSlot(uint64(top))) != i {
			t.Fatalf("slot %d: %d is in %d, %d in %d", i, bottom, HistogramSlot(uint64(bottom)), top, HistogramSlot(uint64(top)))
		}
		if width := top - bottom; 8*width > bottom {
			t.Fatalf("slot %d is %d wide at %d", i, width, bottom)
		}
		bottom = top + 1
	}
	if bottom != 1<<34 || HistogramSlot(math.MaxUint64) != HistogramSlots-1 || DurationSlot(-1) != 0 {
		t.Errorf("the slots end at %d", bottom)
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h Histogram
	if h.Value(0.5) != 0 || h.Quantile(1) != 0 || h.Mean() != 0 {
		t.Error("an empty histogram has something")
	}
}

// Rankings under other keys take no room from the rankings of quiet rules.
func TestTrimOthers(t *testing.T) {
	var f Frame
	for i := range MaxRankings {
		f.Ranking(fmt.Sprint("rule", i)).Allowed.Total = 1
		f.Ranking(fmt.Sprint(Others, "rule", i)).Denied.Total = 9
	}
	f.Ranking(Others + "loud").Denied.Total = 10
	f.Trim()
	for i := range MaxRankings {
		if f.Top[fmt.Sprint("rule", i)] == nil {
			t.Errorf("the ranking of rule %d is gone", i)
		}
	}
	if len(f.Top) != 2*MaxRankings || f.Top[Others+"loud"] == nil {
		t.Errorf("%d rankings: %v", len(f.Top), f.Top[Others+"loud"])
	}
}

// Trim keeps every sum that counts, and every bound: as many as there may be, not one fewer.
func TestTrim(t *testing.T) {
	var f Frame
	want := Counts{}
	for i := range 3 * MaxLines {
		c := Counts{Allowed: int64(i), Denied: 1}
		want.Add(c)
		f.Rule(Line{Rule: fmt.Sprint("rule", i)}).Add(c)
		f.Detail(fmt.Sprint("rule", i)).Decision.Record(1)
		f.Route(fmt.Sprint("route", i)).Requests = 2
		f.Ranking(fmt.Sprint("rule", i)).Allowed.Total = int64(i)
	}
	f.Ranking("").Denied = Sketch{Entries: make([]Entry, MaxRankedAll+9)}
	for i := range MaxQuotas + 5 {
		f.Detail("quotas").Quota(Quota{Period: int64(i)}).Denied = 1
	}
	f.Detail("quotas").Decision.Put(0, 9)
	f.Trim()
	got, routes := Counts{}, int64(0)
	for _, c := range f.Rules {
		got.Add(*c)
	}
	for _, r := range f.Routes {
		routes += r.Requests
	}
	if got != want || routes != 6*MaxLines {
		t.Errorf("%+v and %d, want %+v and %d", got, routes, want, 6*MaxLines)
	}
	if len(f.Rules) != MaxLines || len(f.Routes) != MaxRoutes || len(f.Details) != MaxDetails || len(f.Top) != MaxRankings+1 {
		t.Errorf("%d lines, %d routes, %d details, %d rankings", len(f.Rules), len(f.Routes), len(f.Details), len(f.Top))
	}
	if len(f.Top[""].Denied.Entries) != MaxRankedAll || f.Rules[Line{Rule: "rule5999"}] == nil || f.Rules[Line{Rule: "rule1"}] != nil {
		t.Error("the wrong ones were kept")
	}
	if d := f.Details["quotas"]; d == nil || len(d.Usage) != MaxQuotas {
		t.Errorf("%d quotas", len(d.Usage))
	}
}
