package simulate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir"
)

var update = flag.Bool("update", false, "write the golden files again")

func mustLimit(t testing.TB, text string) weir.Limit {
	t.Helper()
	limit, err := weir.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

func mustTraffic(t testing.TB, text string, limit weir.Limit) Traffic {
	t.Helper()
	traffic, err := ParseTraffic(text, limit, 1, MaxRequests)
	if err != nil {
		t.Fatal(err)
	}
	return traffic
}

// runAll plays a traffic against all algorithms, on a page of 80 columns.
func runAll(t testing.TB, limit, traffic string) *Report {
	t.Helper()
	l := mustLimit(t, limit)
	lanes, leftOut := AllLanes(l)
	if len(leftOut) > 0 {
		t.Fatalf("left out: %q", leftOut)
	}
	return Run(l, lanes, mustTraffic(t, traffic, l), 60)
}

func text(t testing.TB, r *Report, look Look) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, look); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBoundaryAttack has the numbers that the algorithms are known for: all of
// 2N gets through a fixed window, never more than N through an exact one.
func TestBoundaryAttack(t *testing.T) {
	r := runAll(t, "100/1m", "boundary")
	want := map[string]struct{ allowed, worst, bound int64 }{
		"fixed_window":       {200, 200, 200},
		"sliding_window":     {125, 125, 200},
		"sliding_buckets":    {100, 100, 100},
		"sliding_log":        {100, 100, 100},
		"token_bucket":       {149, 149, 199},
		"leaky_bucket":       {149, 149, 199},
		"leaky_bucket shape": {149, 100, 100},
	}
	if len(r.Lanes) != len(want) {
		t.Errorf("%d lanes, want %d", len(r.Lanes), len(want))
	}
	for _, l := range r.Lanes {
		w := want[l.Name]
		if l.Allowed != w.allowed || l.Denied != 200-w.allowed || l.Worst != w.worst || l.Bound != w.bound {
			t.Errorf("%s: allowed %d, denied %d, worst %d, bound %d; want %+v of 200", l.Name, l.Allowed, l.Denied, l.Worst, l.Bound, w)
		}
	}
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file, limit, traffic string
		look                 Look
	}{
		{"boundary.txt", "100/1m", "boundary", Look{Width: 80}},
		{"boundary-ascii.txt", "100/1m", "boundary", Look{Width: 80, ASCII: true}},
		{"boundary-color.txt", "100/1m", "boundary", Look{Width: 80, Color: true}},
		{"steady.txt", "100/1m", "steady", Look{Width: 80}},
		{"overload.txt", "100/1m burst 20", "overload", Look{Width: 80}},
		{"burst.txt", "leaky_bucket 100/1m burst 400 shape", "burst", Look{Width: 80}},
		{"sawtooth.txt", "sliding_window 10/1s count_denied", "sawtooth", Look{Width: 80}},
		{"poisson.txt", "sliding_buckets 60/1h buckets 6", "poisson", Look{Width: 80}},
		{"notation.txt", "10/1s", "5/1s@0s..20s, 30@10s, 8@15s..16s", Look{Width: 80}},
		{"quiet.txt", "100/1m", "5@10s", Look{Width: 80}},
	} {
		t.Run(c.file, func(t *testing.T) {
			golden(t, c.file, text(t, runAll(t, c.limit, c.traffic), c.look))
		})
	}
}

func TestGoldenJSON(t *testing.T) {
	limit := mustLimit(t, "5/10s")
	lanes, err := Lanes(limit, "fixed_window", shaping)
	if err != nil {
		t.Fatal(err)
	}
	r := Run(limit, lanes, mustTraffic(t, "boundary", limit), 10)
	var b bytes.Buffer
	if err := WriteJSON(&b, []*Report{r}); err != nil {
		t.Fatal(err)
	}
	golden(t, "boundary.json", b.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it again):\n%s", path, got)
	}
}

func TestDeterminism(t *testing.T) {
	for _, p := range Patterns() {
		first := text(t, runAll(t, "30/1m", p.Name), Look{Width: 80})
		second := text(t, runAll(t, "30/1m", p.Name), Look{Width: 80})
		if !bytes.Equal(first, second) {
			t.Errorf("%s: two runs differ:\n%s\n%s", p.Name, first, second)
		}
	}
	limit := mustLimit(t, "30/1m")
	one, _ := ParseTraffic("poisson", limit, 1, MaxRequests)
	two, _ := ParseTraffic("poisson", limit, 2, MaxRequests)
	if one.Requests[0] == two.Requests[0] && one.Requests[1] == two.Requests[1] {
		t.Error("the seed changes nothing")
	}
}
