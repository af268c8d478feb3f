package notation

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "abc"}
	for word, want := range map[string]string{
		"token_bucket":               "token_bucket",
		"tokenbucket":                "token_bucket",
		"token-bucket":               "token_bucket",
		"slidng_window":              "sliding_window",
		"slidinglog":                 "sliding_log",
		"fixed":                      "",
		"abd":                        "abc",
		"acb":                        "abc",
		"bac":                        "abc",
		"bca":                        "",
		"toekn_buckte":               "token_bucket",
		"abcx":                       "abc",
		"xabc":                       "abc",
		"ade":                        "",
		"abxy":                       "",
		"xxxabc":                     "",
		"":                           "",
		"xyz":                        "",
		strings.Repeat("token", 1e5): "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%.20q) = %q; want %q", word, got, want)
		}
	}
}

func TestCalled(t *testing.T) {
	elsewhere := map[string]string{"sliding_window_log": "sliding_log"}
	for word, want := range map[string]string{
		"sliding_window_log": "sliding_log", "Sliding-Window Log": "sliding_log", "log": "", "": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := NameHere(word, elsewhere); got != want {
			t.Errorf("%.20q is called %q, want %q", word, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	for word, want := range map[string]string{"bust": `did you mean "burst"?`, "elephant": "see below"} {
		if got := Hint(word, []string{"burst", "shape"}, "see below"); got != want {
			t.Errorf("Hint(%s) = %s", word, got)
		}
	}
}
