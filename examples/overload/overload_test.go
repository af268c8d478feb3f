package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/weirhq/weir/internal/overload"
)

var update = flag.Bool("update", false, "write the picture of the docs again")

// What the picture shows: in an overload without a limiter, all are lost alike; with weir, critical
// requests are not, low ones are, and the service does as much as it can.
func TestWhatIsLost(t *testing.T) {
	without, with := play(nil), play(newLimiter())
	lost := func(h *history, c overload.Priority, phase int) float64 {
		offered, answered := h.inPhase(c, phase)
		return 1 - float64(answered)/float64(offered)
	}
	for p, load := range loads {
		answered := 0
		for c := overload.Low; c <= overload.Critical; c++ {
			_, n := with.inPhase(c, p)
			answered += n
			if l := lost(without, c, p); load > 1 && l < 0.9 {
				t.Errorf("%v ×: without a limiter, %v loses only %.2f", load, c, l)
			}
			if l := lost(with, c, p); load < 1 && l > 0.005 {
				t.Errorf("%v ×: with weir, %v loses %.4f", load, c, l)
			}
		}
		if good := float64(answered) / phase.Seconds() / capacity; good < 0.9*min(1, load) {
			t.Errorf("%v ×: with weir, %.2f of the capacity is used", load, good)
		}
		if l := lost(with, overload.Critical, p); l > 0.001 {
			t.Errorf("%v ×: with weir, critical requests lose %.4f", load, l)
		}
		if l := lost(with, overload.Low, p); load > 1 && l < 0.95 {
			t.Errorf("%v ×: with weir, low requests lose only %.4f", load, l)
		}
	}
}

// The docs show the picture that this program draws.
func TestPicture(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round the simulation's numbers differently")
	}
	out := filepath.Join(t.TempDir(), "overload.svg")
	var table bytes.Buffer
	if err := run(&table, out); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &table)
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	const kept = "../../docs/images/overload.svg"
	if *update {
		if err := os.WriteFile(kept, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what this program draws; run go test ./examples/overload -update", kept)
	}
}
