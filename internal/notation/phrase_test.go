package notation

import (
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 rules", 1: "1 rule", 2: "2 rules"} {
		if got := Count(n, "rule"); got != want {
			t.Errorf("Count(%d) = %q", n, got)
		}
	}
}

func TestPage(t *testing.T) {
	for got, want := range map[string]string{
		Cut("short", 5, false):                                "short",
		Cut("longer", 5, false):                               "long…",
		Cut("longer", 5, true):                                "lo...",
		Cut("a\x1bb", 20, false):                              `"a\x1bb"`,
		Cut("…", 20, true):                                    `"\u2026"`,
		Wrap("one two three", 7):                              "one two\nthree\n",
		Wrap(" incomprehensible  words", 5):                   "incomprehensible\nwords\n",
		Grid([][]string{{"a", "n", "b"}, {"ü", "10", ""}}, 1): "a   n  b\nü  10\n",
		string(Bars([]int64{0, 1, 50, 100}, 100, Blocks)):     " ▁▄█",
		string(Bars([]float64{0, 0}, 0, Blocks)):              "  ",
		Span(time.Hour):                                       "1h",
		Span(time.Hour + time.Second):                         "1h0m1s",
		Span(90 * time.Minute):                                "1h30m",
		Span(0):                                               "0s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
