package archive

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/stats/frame"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// keeper is what both archives can do.
type keeper interface {
	Levels(Kind) []Level
	Add(context.Context, []Part) error
	Read(ctx context.Context, kind Kind, level int, from, to int64) ([]Slot, error)
	RollUp(context.Context, time.Time) error
	Lead(context.Context, string, time.Duration) (bool, error)
	Lag() time.Duration
	SetNote(ctx context.Context, kind string, n Note, now time.Time) error
	OfferNote(ctx context.Context, kind string, n, was Note, now time.Time) error
	Notes(ctx context.Context, kind string, now time.Time) ([]Note, error)
}

var (
	_ keeper = (*Memory)(nil)
	_ keeper = (*Redis)(nil)
)

func clientOf(t testing.TB, server *testredis.Server) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func openRedis(t testing.TB, client rueidis.Client, o Options) *Redis {
	t.Helper()
	a, err := NewRedis(client, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func openMemory(t testing.TB, o Options) *Memory {
	t.Helper()
	m, err := NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// epoch is a time in the middle of a day, an hour and a minute.
const epoch = 1_790_000_000

// someFrame has n requests, half of which a rule has refused.
func someFrame(n int64) *frame.Frame {
	f := &frame.Frame{Requests: frame.Counts{Allowed: n - n/2, Denied: n / 2}}
	f.Decision.Put(frame.SlotOf(time.Duration(n)*time.Microsecond), n)
	f.Rule(frame.Line{Rule: "api"}).Denied = n / 2
	f.Rule(frame.Line{Rule: "api", Tier: "pro"}).Allowed = n - n/2
	return f
}

func part(kind Kind, start int64, id string, f *frame.Frame) Part {
	return Part{Kind: kind, Start: start, ID: id, Frame: f.Append(nil)}
}

// total adds up the requests of a level, and checks that its parts agree.
func total(t testing.TB, a keeper, kind Kind, level int, from, to int64) int64 {
	t.Helper()
	slots, err := a.Read(t.Context(), kind, level, from, to)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for i, s := range slots {
		rules := frame.Counts{}
		for _, c := range s.Frame.Rules {
			rules.Add(*c)
		}
		if rules != s.Frame.Requests || s.Frame.Decision.Count != rules.Total() {
			t.Fatalf("level %d, slot %d: requests %+v, rules %+v, %d timed", level, s.Start, s.Frame.Requests, rules, s.Frame.Decision.Count)
		}
		if i > 0 && s.Start <= slots[i-1].Start || s.Start%a.Levels(kind)[level].Step != 0 {
			t.Fatalf("level %d: slot %d is out of order", level, s.Start)
		}
		n += s.Frame.Requests.Total()
	}
	return n
}

func sums(t testing.TB, a keeper, from, to int64) string {
	t.Helper()
	var all []int64
	for level := range a.Levels(Series) {
		all = append(all, total(t, a, Series, level, from, to))
	}
	return fmt.Sprint(all)
}

func clusterClient(t testing.TB, addrs []string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true, ShuffleInit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
