package main

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestMeasure(t *testing.T) {
	o := options{callers: 4, requests: 10, rounds: 3}
	figures := measure(t, o, func(int, int, string) {})
	if want := 3 * (2*len(questions()) + len(modelQuestions())); len(figures) != want {
		t.Fatalf("%d figures, want %d", len(figures), want)
	}
	for _, f := range figures {
		if f.rate <= 0 || f.first <= 0 || f.name == groups[f.group].reference && f.ratio != 1 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	if err := writeTable(&b, machine.Describe(), o, figures); err != nil || strings.Count(b.String(), counting+" ") != len(modelQuestions()) || strings.Count(b.String(), groups[1].name) != 1 {
		t.Errorf("%s, %v", &b, err)
	}
}

// A ratio is to the same round, however fast the others were.
func TestSummarize(t *testing.T) {
	var all [][]figure
	for _, c := range []struct {
		name  string
		rates []float64
	}{{bare, []float64{100, 10, 1000}}, {ours, []float64{95, 9, 800}}} {
		var m []figure
		for _, r := range c.rates {
			m = append(m, figure{name: c.name, rate: r})
		}
		all = append(all, m)
	}
	got := summarize(all, bare)
	if got[0].ratio != 1 || got[1].ratio != 0.9 || got[1].rate != 95 {
		t.Errorf("%+v", got)
	}
}

// An answer that is not the right one fails the run: one without limits from whom they
// are expected, one with another length, and one that is no success.
func TestWrongAnswersAreSeen(t *testing.T) {
	h := startProxies(t)
	o := options{callers: 1, requests: 1}
	c, q := h.contestants[1], questions()[0]
	if _, err := ask(c, q, o); err != nil {
		t.Fatal(err)
	}
	limited := c
	limited.limited = true
	if _, err := ask(limited, q, o); err == nil || !strings.Contains(err.Error(), "limits") {
		t.Errorf("missing headers: %v", err)
	}
	other := q
	other.body++
	if _, err := ask(c, other, o); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("another length: %v", err)
	}
	other = q
	other.text = []byte("GET / HTTP/1.1\r\n\r\n")
	if _, err := ask(c, other, o); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("no success: %v", err)
	}
}
