package weir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/notation"
)

// ParseLimit parses a limit in the notation
//
//	[algorithm] N/period [zone NAME] [starts START] [burst N] [buckets N] [shape] [count_denied] [release]
//
// for example "100/1m", "5/minute", "leaky_bucket 100/1m burst 400 shape" or
// "10000/month zone Asia/Shanghai starts 15". The algorithm is token_bucket by default; for
// periods of the calendar it is fixed_window. The limit that it returns is valid.
//
// The data of a zone is read as time.LoadLocation does. Import time/tzdata where the system
// may not have it.
func ParseLimit(s string) (Limit, error) {
	words := strings.Fields(s)
	var l Limit
	named := len(words) > 0 && !startsWithDigit(words[0]) && !strings.Contains(words[0], "/")
	if named {
		a, err := parseAlgorithm(words[0])
		if err != nil {
			return Limit{}, err
		}
		l.Algorithm = a
		words = words[1:]
	}
	if len(words) == 0 {
		return Limit{}, invalid("limit", "%q has no rate; write for example 100/1m", s)
	}
	if err := l.parseRate(words[0]); err != nil {
		return Limit{}, err
	}
	if err := l.parseOptions(words[1:]); err != nil {
		return Limit{}, err
	}
	if !named && l.isCalendar() {
		l.Algorithm = FixedWindow
	}
	if err := l.Validate(); err != nil {
		return Limit{}, err
	}
	return l, nil
}

// MustParseLimit parses a limit from source code as ParseLimit does. It panics if the
// limit is invalid.
func MustParseLimit(s string) Limit {
	l, err := ParseLimit(s)
	if err != nil {
		panic(err)
	}
	return l
}

func (l *Limit) parseRate(rate string) error {
	n, period, ok := strings.Cut(rate, "/")
	if !ok {
		return invalid("limit", "%q is not a rate; write N/period, for example 100/1m", rate)
	}
	var err error
	if l.N, err = parseUnits(n); err != nil {
		return invalid("limit", "%q is not a whole number of units that can be counted; write N/period, for example 100/1m", n)
	}
	if l.Period, err = notation.ParseDurationAfter(n+"/", period); err != nil {
		return invalid("period", "%v", err)
	}
	return nil
}

func (l *Limit) parseOptions(words []string) error {
	for i := 0; i < len(words); i++ {
		if slices.Contains(words[:i], words[i]) && !startsWithDigit(words[i]) {
			return invalid("limit", "%q is given twice; write it once", words[i])
		}
		switch word := words[i]; word {
		case "shape":
			l.Shape = true
		case "count_denied":
			l.CountDenied = true
		case "release":
			l.Release = true
		case "lease":
			i++
			if i == len(words) {
				return invalid(word, "a time is required; write for example \"1000/1m lease 1s\"")
			}
			var err error
			if l.Lease, err = notation.ParseDuration(words[i]); err != nil {
				return invalid(word, "%v", err)
			}
		case "zone", "starts":
			i++
			if i == len(words) {
				return invalid(word, "a value is required; write for example \"10000/month zone Europe/Berlin starts 15\"")
			}
			if word == "starts" {
				l.Starts = words[i]
				continue
			}
			var err error
			if l.Zone, err = notation.LoadZone(words[i]); err != nil {
				return invalid("zone", "%v", err)
			}
		case "burst", "buckets":
			i++
			if i == len(words) {
				return invalid(word, "a number is required; write for example %q", word+" 60")
			}
			n, err := parseUnits(words[i])
			if err != nil || n == 0 {
				return invalid(word, "%q is not a whole number of at least 1", words[i])
			}
			if word == "burst" {
				l.Burst = n
			} else {
				l.Buckets = int(min(n, MaxBuckets+1))
			}
		default:
			options := []string{"zone", "starts", "burst", "buckets", "shape", "count_denied", "release", "lease"}
			return invalid("limit", "%q is unknown; %s", word, notation.Hint(word, options, "after the rate come "+strings.Join(options, ", ")))
		}
	}
	return nil
}

// parseUnits takes digits alone: no sign, no exponent, no fraction.
func parseUnits(s string) (int64, error) {
	if !startsWithDigit(s) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, 64)
}

func startsWithDigit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// String returns the limit in the notation of ParseLimit.
func (l Limit) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", l.Algorithm, l.Rate())
	b.WriteString(l.calendarText())
	if l.Burst != 0 {
		fmt.Fprintf(&b, " burst %d", l.Burst)
	}
	if l.Buckets != 0 {
		fmt.Fprintf(&b, " buckets %d", l.Buckets)
	}
	if l.Shape {
		b.WriteString(" shape")
	}
	if l.CountDenied {
		b.WriteString(" count_denied")
	}
	if l.Release {
		b.WriteString(" release")
	}
	if l.Lease != 0 {
		fmt.Fprintf(&b, " lease %s", notation.FormatDuration(l.Lease))
	}
	return b.String()
}

// Policy returns the limit as people talk about it: its Rate or, for InFlight, "concurrency 20".
func (l Limit) Policy() string {
	if l.Algorithm == InFlight {
		return "concurrency " + strconv.FormatInt(l.N, 10)
	}
	return l.Rate()
}

// Rate returns only N/period of the limit, such as "100/1m".
func (l Limit) Rate() string { return fmt.Sprintf("%d/%s", l.N, notation.FormatDuration(l.Period)) }
