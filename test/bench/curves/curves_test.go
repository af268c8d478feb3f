package curves

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulate/chart"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestRun(t *testing.T) {
	o := Options{
		Keys: []int{1, 10, 100}, RedisKeys: []int{10}, Rules: []int{1, 10}, Callers: []int{1, 4}, Limits: []int{1, 16}, Costs: []int{1, 10_000},
		Round: time.Millisecond, Rounds: 3,
	}
	figures := Run(t, o, func(int, int, string) {})
	for _, f := range figures {
		if len(f.Micros) != len(f.X) || slices.Min(f.Micros) <= 0 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	testcall.OK(t, WriteTables(&b, machine.Describe(), o, figures))
	for _, c := range Charts() {
		if !strings.Contains(b.String(), "## "+c.Title) {
			t.Errorf("no table for %s in\n%s", c.Title, &b)
		}
	}
	drawn := Draw(figures)
	for _, c := range Charts() {
		var svg strings.Builder
		testcall.OK(t, chart.WriteSVG(&svg, drawn[c.File]))
		for d := xml.NewDecoder(strings.NewReader(svg.String())); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", c.File, err)
			}
		}
	}
}

// A wrong answer fails the run.
func TestErrorsAreSeen(t *testing.T) {
	wrong := errors.New("wrong")
	s := subject{2, func(caller int) func(int) error {
		return func(int) error {
			if caller == 1 {
				return wrong
			}
			return nil
		}
	}}
	if _, err := s.round(time.Millisecond); !errors.Is(err, wrong) {
		t.Errorf("round = %v", err)
	}
}
