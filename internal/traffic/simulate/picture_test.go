package simulate

import (
	"bytes"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weirhq/weir"
)

// draw plays traffic in the slices of a picture, and writes it.
func draw(t *testing.T, limit, traffic string, write func(io.Writer, []*Report) error) []byte {
	t.Helper()
	l := mustLimit(t, limit)
	lanes, _ := AllLanes(l)
	r := Run(l, lanes, mustTraffic(t, traffic, l), PictureColumns)
	var b bytes.Buffer
	if err := write(&b, []*Report{r}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenPictures(t *testing.T) {
	golden(t, "boundary.svg", draw(t, "100/1m", "boundary", WriteSVG))
	golden(t, "boundary.html", draw(t, "100/1m", "boundary", WriteHTML))
	golden(t, "overload.csv", draw(t, "3/10s", "overload", WriteCSV))
}

// The pictures in the docs are what weir simulate --out draws.
func TestDocsPictures(t *testing.T) {
	for name, c := range map[string][2]string{
		"boundary.svg": {"100/1m", "boundary"},
		"burst.svg":    {"100/1m burst 150", "burst"},
		"sawtooth.svg": {"100/1m", "sawtooth"},
	} {
		golden(t, filepath.Join("../../../../docs/images", name), draw(t, c[0], c[1], WriteSVG))
	}
	page, err := os.ReadFile("../../../docs/explanation/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"boundary.svg", "burst.svg", "sawtooth.svg"} {
		if !bytes.Contains(page, []byte("(../images/"+name+")")) {
			t.Errorf("docs/explanation/algorithms.md does not show %s", name)
		}
	}
}

// The numbers of a table add up to those of the report.
func TestCSVAddsUp(t *testing.T) {
	l := mustLimit(t, "100/1m")
	lanes, _ := AllLanes(l)
	r := Run(l, lanes, mustTraffic(t, "sawtooth", l), PictureColumns)
	var b bytes.Buffer
	if err := WriteCSV(&b, []*Report{r}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string][3]int64)
	for _, row := range rows[1:] {
		s := sums[row[1]]
		for i := range s {
			n, err := strconv.ParseInt(row[4+i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			s[i] += n
		}
		sums[row[1]] = s
	}
	for _, lane := range r.Lanes {
		if got := sums[lane.Name]; got != [3]int64{lane.Allowed, lane.Denied, lane.Allowed} {
			t.Errorf("%s: %v", lane.Name, got)
		}
	}
}

// The budget is what a request of that many units would find.
func TestBudget(t *testing.T) {
	l := mustLimit(t, "10/1s")
	lanes, err := Lanes(l, "token_bucket", "fixed_window", "sliding_log")
	if err != nil {
		t.Fatal(err)
	}
	traffic := mustTraffic(t, "5@100ms,3@900ms,4@1100ms", l)
	traffic.Requests = append(traffic.Requests, Request{At: 1_950_000, Key: "other", Cost: 2}) // no concern of theirs
	r := Run(l, lanes, traffic, 4)
	if r.Axis.Begin != 0 || r.Axis.Slice != 500_000 || r.Axis.Count != 4 {
		t.Fatalf("%+v", r.Axis)
	}
	want := map[string][4]int64{
		"token_bucket": {8, 7, 8, 10},
		"fixed_window": {5, 2, 6, 6},
		// At the end of a slice the units of the last second are in use.
		"sliding_log": {5, 2, 3, 6},
	}
	for _, lane := range r.Lanes {
		if got := [4]int64(lane.RemainingSlices); got != want[lane.Name] || lane.Capacity != 10 {
			t.Errorf("%s: %v of %d, want %v", lane.Name, got, lane.Capacity, want[lane.Name])
		}
	}
	if n, b := (Traffic{Requests: []Request{{Key: "a", Cost: 1}, {Key: "b", Cost: 2}, {Key: "c", Cost: weir.MaxUnits}}}).clients(); n != 3 || b != "c" {
		t.Errorf("%q is busiest", b)
	}
}
