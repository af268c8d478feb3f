package scenario_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/traffic/scenario"
)

// play parses and runs a scenario on the arithmetic.
func play(t *testing.T, src string) error {
	t.Helper()
	script, err := scenario.Parse("s.txt", []byte(src))
	if err != nil {
		return err
	}
	return script.Run(t.Context(), scenario.NewModel().Subject())
}

// Every kind of answer is really compared: a wrong one is reported with file
// and line.
func TestWrongAnswersAreReported(t *testing.T) {
	for src, want := range map[string]string{
		"limit 5/1m\nat 0s take k -> deny":                                                        "s.txt:2: at 0s take k: it was not: want deny",
		"limit 5/1m\nat 0s take k 6 -> allow":                                                     "s.txt:2: at 0s take k 6: it was not: want allow",
		"limit 5/1m\nat 0s take k -> remaining 5":                                                 "remaining is 4, want 5",
		"limit 5/1m\nat 0s take k -> limit 6":                                                     "limit is 5, want 6",
		"limit 5/1m\nat 0s take k -> reset 13s":                                                   "reset is 12s, want 13s",
		"limit 5/1m\nat 0s take k 6 -> retry 1s":                                                  "retry is never, want 1s",
		"limit 5/1m\nat 0s take k 5\nat 0s take k -> retry never":                                 "s.txt:3: at 0s take k: retry is 12s, want never",
		"limit leaky_bucket 5/1m shape\nat 0s take k times 2 -> delay 13s":                        "request 2 of 2: delay is 12s, want 13s",
		"limit 5/1m\nat 0s take k times 6 -> allowed 6":                                           "allowed is 5, want 6",
		"limit 5/1m\nat 0s take k times 6 -> allow":                                               "request 6 of 6: it was not: want allow",
		"limit 5/1m\nat 0s take k times 6 every 12s -> remaining 3":                               "remaining is 4, want 3",
		"limit 5/1m\nat 0s take k 2\ncount k from 0s to 1s -> 1":                                  "units is 2, want 1",
		"limit 5/1m\nat 0s take k 0":                                                              "weir: cost: 0 cannot be charged",
		"limit 5/1m\nat 0s take k -1":                                                             "weir: cost: -1 cannot be charged",
		"limit 5/1m\nat 0s refund k of 0s":                                                        `"k" took nothing at that time`,
		"limit 5/1m\nat 0s refund k 0":                                                            "weir: cost: 0 cannot be charged",
		"limit 5/1m\nat 0s reset \"\"":                                                            "weir: key: it is empty",
		"limit a: 5/1m\nlimit b: fixed_window 1/1m\nat 0s take a=k and b=k 2 -> allow":            "it was not: want allow",
		"limit a: 5/1m\nlimit b: fixed_window 1/1m\nat 0s take a=k and b=k 2 -> deny; a deny":     "a: it was not: want deny",
		"limit a: 5/1m\nlimit b: fixed_window 1/1m\nat 0s take a=k and b=k 2 -> deny; b retry 1s": "b: retry is never, want 1s",
	} {
		err := play(t, src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %q", src, err, want)
		}
	}
}

func TestAllMistakesAreReported(t *testing.T) {
	err := play(t, "limit 5/1m\nat 0s take k -> deny\nat 0s take k -> allow\nat 0s take k -> remaining 9")
	if err == nil || !strings.Contains(err.Error(), "s.txt:2") || !strings.Contains(err.Error(), "s.txt:4") || strings.Contains(err.Error(), "s.txt:3") {
		t.Errorf("got %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	for src, want := range map[string]string{
		"limit 1/1x": "s.txt:1: weir: period: bad duration",
		"limit a: 1/1m\nat 0s take a=k -> x; a allow": `"x" is not an answer`,
		"hello":                                                                     `s.txt:1: "hello" is unknown; a line begins with limit, at or count`,
		"limit 0/1m":                                                                "s.txt:1: weir: limit: 0 units allow no request",
		"limit 1/1m\nlimit 1/1s":                                                    `s.txt:2: limit "" already exists`,
		"limit a: 1/1m\nlimit a: 1/1s":                                              `s.txt:2: limit "a" already exists`,
		"at 0s take k":                                                              "no limit is defined yet",
		"limit a: 1/1m\nat 0s take k":                                               "the key does not say which limit; write a=KEY",
		"limit 1/1m\nat soon take k":                                                `"soon" is not a time`,
		"limit 1/1m\nat 0s grab k":                                                  `"grab" is unknown; after the time comes take, charge, renew, peek, refund, reset, reserve, settle, cancel or extend`,
		"limit 1/1m\nat 0s reserve -> allow":                                        "the hold needs a name",
		"limit 1/1m\nat 0s reserve h k for x":                                       "x",
		"limit 1/1m\nat 0s settle h":                                                "how many units were used",
		"limit 1/1m\nat 0s settle h -1":                                             "how many units were used",
		"limit 1/1m\nat 0s cancel h -> allow":                                       `"allow" is not the state of a hold`,
		"limit 1/1m\nat 0s cancel":                                                  "the hold needs a name",
		"limit 1/1m\nat 0s take":                                                    "the key is required",
		"limit 1/1m\nat 0s take -> allow":                                           "the key is required",
		"limit 1/1m\nat 0s take k 99999999999999999999":                             "is not a cost",
		"limit 1/1m\nat 0s take k times 0":                                          "times takes a whole number",
		"limit 1/1m\nat 0s take k times 1000001":                                    "times takes a whole number from 1 to 1000000",
		"limit 1/1m\nat 0s take k times 2 every x":                                  "bad duration",
		"limit 1/1m\nat 0s take k within x":                                         "bad duration",
		"limit 1/1m\nat 0s take k maybe":                                            `"maybe" is unexpected here`,
		"limit 1/1m\nat 0s take k -> remainin 3":                                    `"remainin" is not an answer; did you mean "remaining"?`,
		"limit 1/1m\nat 0s take k -> x":                                             `"x" is not an answer; expect any of`,
		"limit 1/1m\nat 0s take k -> remaining":                                     "remaining:",
		"limit 1/1m\nat 0s take k -> retry soon":                                    "retry: bad duration",
		"limit 1/1m\nat 0s reset k -> allow":                                        "a reset has no answer",
		"limit 1/1m\nat 0s refund k -> allow":                                       "a refund has no answer",
		"limit 1/1m\nat 0s refund k of noon":                                        `"noon" is not a time`,
		"limit 1/1m\nat 0s take \"k":                                                "is never closed",
		"limit 1/1m\ncount k -> 1":                                                  `found "->" instead of "from"`,
		"limit 1/1m\ncount k from 0s -> 1":                                          `found "->" instead of "to"`,
		"limit 1/1m\ncount k from 0s to 1s":                                         `found "" instead of "->"`,
		"limit 1/1m\ncount k from 0s to 1s -> x":                                    "count is answered by a whole number",
		"limit 1/1m\nat 0s take k -> allow; x allow":                                "\"x\" is none of the request's limits",
		"limit a: 1/1m\nlimit b: 1/1s\nat 0s take a=k and b=k -> allow remaining 1": `remaining of which limit? write it after "; NAME"`,
		"limit 1/1m\n" + strings.Repeat("at 0s take k times 1000000\n", 6):          "s.txt:7: the scenario asks more than 5000000 times by now",
		"limit 1/1m\nat 99999d take k":                                              "is more than a century after the start",
		"limit 1/1m\nat 0s take k times 2 every 99999d":                             "is longer than a century",
		strings.Repeat("#\n", 10001):                                                "lines are too many",
	} {
		err := play(t, src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v\nwant %q", src, err, want)
		}
	}
}

// Words, quotes, comments and times of day.
func TestNotation(t *testing.T) {
	err := play(t, `
# a comment
limit ip: fixed_window 2/1m   # and one behind
limit user: fixed_window 5/1m
at 10:30 take ip="a b" and user=x 2 -> allow; ip remaining 1; user remaining 3
at 10:30:15 take ip="a b" -> allow remaining 0
at 10:30:15.5 take ip="a\x20b" -> deny retry 44500ms
at 10:30:15.5 take user=ip=x -> allow
at 10:30:16 peek user=x 4 -> deny
at 10:30:16 reset user=x
at 10:30:16 take user=x 5 times 1 -> allow
`)
	if err != nil {
		t.Error(err)
	}
}

// The parser survives anything, and what it accepts can be run.
func FuzzScenario(f *testing.F) {
	f.Add("limit 5/1m\nat 0s take k times 3 every 1s -> allow remaining 2 reset 1s")
	f.Add("limit a: leaky_bucket 5/1m shape\nat 0s take a=\"k\" 2 within 1s -> deny; a deny retry never\ncount a=k from 0s to 1s -> 1")
	f.Fuzz(func(t *testing.T, src string) {
		script, err := scenario.Parse("f", []byte(src))
		if err != nil || len(script.Steps) > 100 {
			return
		}
		for i := range script.Steps {
			script.Steps[i].Times = min(script.Steps[i].Times, 10)
		}
		_ = script.Run(t.Context(), scenario.NewModel().Subject())
	})
}

// Only the steps that expect something are counted.
func TestAnswered(t *testing.T) {
	script, err := scenario.Parse("s.txt", []byte("limit fixed_window 1/1m\nat 0s take x -> allow\nat 0s take =x -> allow\nat 0s take y"))
	if err != nil || script.Answered() != 2 {
		t.Fatalf("%d answers, %v", script.Answered(), err)
	}
	if err := script.Run(t.Context(), scenario.NewModel().Subject()); err != nil {
		t.Error(err)
	}
}
