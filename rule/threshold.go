package rule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// MaxWarn is the maximum number of thresholds of a rule. Each can take a place in the store
// per client.
const MaxWarn = 4

// ParseThreshold parses a share of a limit, as in "80%": 1 to 100.
func ParseThreshold(text string) (percent int, err error) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err = strconv.Atoi(digits)
	switch {
	case err == nil && !ok:
		return 0, fmt.Errorf("%s has no percent sign; write %d%%", document.Quote(text), percent)
	case err != nil || percent < 1 || percent > 100 || digits != strconv.Itoa(percent):
		return 0, fmt.Errorf("%s is no share of the limit; write a whole number from 1%% to 100%%, such as 80%%", document.Quote(text))
	}
	return percent, nil
}

// thresholds reads one threshold or a list of them, and puts them in order.
func (p *parser) thresholds(e *document.Element, _ string, r *Rule) {
	var all []int
	for _, v := range p.texts(e, "warn", maxText) {
		percent, err := ParseThreshold(v.Text)
		switch {
		case err != nil:
			p.errorf("E034", v.Position, "warn", "%v", err)
			continue
		case slices.Contains(all, percent):
			p.errorf("E034", v.Position, "warn", "%d%% is given twice; write it once", percent)
			continue
		}
		all = append(all, percent)
	}
	if len(all) > MaxWarn {
		p.errorf("E034", e.Position, "warn", "%d thresholds exceed the maximum of %d; remove some", len(all), MaxWarn)
		return
	}
	slices.Sort(all)
	r.Warn = all
}

func validateThresholds(all []int) error {
	for i, percent := range all {
		if percent < 1 || percent > 100 {
			return fmt.Errorf("warn: %d%% is no share of the limit; write 1 to 100", percent)
		}
		if i > 0 && percent <= all[i-1] {
			return errors.New("warn: the thresholds are not in ascending order; sort them, and write each once")
		}
	}
	if len(all) > MaxWarn {
		return fmt.Errorf("warn: %d thresholds exceed the maximum of %d; remove some", len(all), MaxWarn)
	}
	return nil
}

func thresholdsElement(r *Rule) *document.Element {
	texts := make([]string, len(r.Warn))
	for i, percent := range r.Warn {
		texts[i] = strconv.Itoa(percent) + "%"
	}
	return oneOrList(texts)
}

// Marker returns the limit that remembers, for each client, that a threshold of one of the
// rule's limits was reached. It is of one unit, and charged even if that does not fit:
//
//   - For a fixed window, the unit is free again in the next window.
//   - For other algorithms, it is free after it was not charged for as long as the whole limit
//     takes to reset, and for MarkerSlack.
//
// Its name contains a colon, which the id of a rule does not, so it shares no usage with one.
func (c *Entry) Marker(limit *weir.Compiled, percent int) (*weir.Compiled, error) {
	m := limit.Limit()
	m.Name, m.N, m.Burst, m.CountDenied = c.ID+":warn"+strconv.Itoa(percent), 1, 0, true
	if m.Algorithm != weir.FixedWindow {
		m = weir.Limit{Name: m.Name, Algorithm: weir.SlidingLog, N: 1, CountDenied: true}
		m.Period = min(limit.FullReset()+MarkerSlack(limit), weir.MaxPeriod)
	}
	return m.Compile()
}

// MarkerSlack is how long a marker need not be charged again.
func MarkerSlack(limit *weir.Compiled) time.Duration {
	return min(limit.FullReset()/8, time.Minute).Truncate(time.Microsecond)
}

// AppendMarkers appends the markers of limits, for all thresholds of the rule.
func (c *Entry) AppendMarkers(dst, limits []*weir.Compiled) []*weir.Compiled {
	for _, limit := range limits {
		for _, percent := range c.Warn {
			if m, err := c.Marker(limit, percent); err == nil {
				dst = append(dst, m)
			}
		}
	}
	return dst
}

// EveryMarker returns the markers of all limits that a client of the rule may have had.
func (c *Entry) EveryMarker(identity string) []*weir.Compiled {
	if len(c.Warn) == 0 {
		return nil
	}
	all := c.AppendMarkers(nil, c.overrides[identity].quota)
	for q := range c.quotas {
		all = c.AppendMarkers(all, q)
	}
	slices.SortFunc(all, func(a, b *weir.Compiled) int { return cmp.Compare(a.Kind(), b.Kind()) })
	return slices.CompactFunc(all, func(a, b *weir.Compiled) bool { return a.Kind() == b.Kind() })
}
