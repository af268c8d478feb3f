package protect

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits are shares of CPU and memory above which requests are shed. 0 is no limit.
type Limits struct{ CPU, Memory float64 }

// Check says what is wrong with limits, and how to correct it.
func (l Limits) Check() error {
	for _, part := range []struct {
		name  string
		value float64
	}{{"CPU", l.CPU}, {"Memory", l.Memory}} {
		if !(part.value >= 0 && part.value <= 1) {
			return fmt.Errorf("%s is %v; it must be a share from 0 to 1, for example 0.85, or 0 for no limit", part.name, part.value)
		}
	}
	return nil
}

// Parse reads limits such as "cpu=85%,memory=90%".
func Parse(text string) (l Limits, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		var at *float64
		switch name {
		case "cpu":
			at = &l.CPU
		case "memory":
			at = &l.Memory
		default:
			return Limits{}, fmt.Errorf("%q is not cpu or memory; write for example cpu=85%%,memory=90%%", clip(name))
		}
		if *at != 0 {
			return Limits{}, fmt.Errorf("%s is given twice; write it once", name)
		}
		digits, percent := strings.CutSuffix(value, "%")
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !percent || !(n > 0 && n <= 100) {
			return Limits{}, fmt.Errorf("%s: %q is not a percentage above 0%% and up to 100%%; write for example %s=85%%", name, clip(value), name)
		}
		*at = n / 100
	}
	return l, nil
}

// clip keeps an error to a line.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
