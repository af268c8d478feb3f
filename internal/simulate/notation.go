package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/spelling"
)

// maxCount is the largest number in a term. The rate of a short stretch may
// well be above MaxRequests a second.
const maxCount = 1_000_000_000

const example = "write for example 50@10s, 3/1s@0s..1m, or the name of a pattern"

// ParseTraffic reads traffic as people write it; see the package comment.
// Patterns are scaled to the limit; the seed is for those that are random.
func ParseTraffic(text string, limit weir.Limit, seed uint64) (Traffic, error) {
	return ParseTrafficUpTo(text, limit, seed, MaxRequests)
}

// ParseTrafficUpTo is ParseTraffic for who has less room or time than a person at
// a terminal: it denies more than so many requests, before it has made them all.
func ParseTrafficUpTo(text string, limit weir.Limit, seed uint64, most int) (Traffic, error) {
	if err := limit.Validate(); err != nil {
		return Traffic{}, err
	}
	c := collector{most: min(most, MaxRequests), start: periodsOf(limit).start()}
	for term := range strings.SplitSeq(text, ",") {
		term = strings.TrimSpace(term)
		if err := c.term(term, limit, seed); err != nil {
			return Traffic{}, fmt.Errorf("traffic: %q: %w", term, err)
		}
	}
	if len(c.requests) == 0 {
		return Traffic{}, fmt.Errorf("traffic: %q has no requests; %s", text, example)
	}
	t := Traffic{Text: text, Requests: c.sorted()}
	if p, ok := patternNamed(strings.TrimSpace(text)); ok {
		t.Text = p.Name + ": " + p.About
	}
	return t, nil
}

func (c *collector) term(term string, limit weir.Limit, seed uint64) error {
	if p, ok := patternNamed(term); ok {
		return p.make(c, limit, seed)
	}
	amount, when, ok := strings.Cut(term, "@")
	switch {
	case term == "":
		return fmt.Errorf("the term is empty; %s", example)
	case !ok:
		if near := spelling.Nearest(term, patternNames()); near != "" {
			return fmt.Errorf("unknown pattern; did you mean %q?", near)
		}
		return fmt.Errorf("not traffic; %s: %s", example, strings.Join(patternNames(), ", "))
	}
	from, to, stretch, err := parseStretch(when)
	if err != nil {
		return err
	}
	count, per, isRate := strings.Cut(amount, "/")
	n, err := parseCount(count)
	switch {
	case err != nil:
		return err
	case isRate && !stretch:
		return fmt.Errorf("a rate needs a start and an end; write for example %s@0s..1m", amount)
	case !isRate:
		return c.spread(n, from, to)
	}
	period, err := parseInstant(per)
	if err != nil {
		return err
	}
	if period == 0 {
		return fmt.Errorf("%q is not a valid period; write for example 3/1s", per)
	}
	return c.rate(n, period, from, to)
}

// parseStretch reads "10s" or "10s..20s".
func parseStretch(s string) (from, to weir.Micros, stretch bool, err error) {
	first, second, stretch := strings.Cut(s, "..")
	if from, err = parseInstant(first); err != nil || !stretch {
		return from, from, false, err
	}
	if to, err = parseInstant(second); err != nil {
		return 0, 0, false, err
	}
	if to <= from {
		return 0, 0, false, fmt.Errorf("%s is not after %s; write the earlier time first", second, first)
	}
	return from, to, true, nil
}

func parseInstant(s string) (weir.Micros, error) {
	d, err := duration.Parse(s)
	if err != nil {
		return 0, err
	}
	return weir.Micros(d.Microseconds()), nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && n > maxCount:
		return 0, fmt.Errorf("%s requests are too many; write at most %d", s, maxCount)
	case err != nil || n == 0:
		return 0, fmt.Errorf("%q is not a whole number of requests; %s", s, example)
	}
	return int64(n), nil
}
