package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

// ParseQuota parses limits as a rule has them: one or several rates such as "100/1m" and
// "concurrency 20" for requests at the same time, or "unlimited" alone. The burst is 0 for N. Zone and starts are those of the rule, unless they
// are given. An error is a *weir.InvalidError.
func ParseQuota(limits []string, burst int64, zone, starts string) (Quota, error) {
	switch {
	case len(limits) == 0:
		return Quota{}, invalidQuota("limit", "required; write for example 100/1m, or unlimited")
	case len(limits) > maxRates:
		return Quota{}, invalidQuota("limits", "%d limits exceed the maximum of %d, because every request is charged against each; remove some", len(limits), maxRates)
	case len(limits) == 1 && limits[0] == unlimited && burst != 0:
		return Quota{}, invalidQuota("burst", "an unlimited quota has no burst; remove it")
	case len(limits) == 1 && limits[0] == unlimited && (zone != "" || starts != ""):
		return Quota{}, invalidQuota("limit", "an unlimited quota has no periods; remove zone and starts")
	case len(limits) == 1 && limits[0] == unlimited:
		return Quota{Unlimited: true}, nil
	}
	q := Quota{Burst: burst, Zone: zone, Starts: starts}
	for _, text := range limits {
		if n, ok := strings.CutPrefix(text, concurrency+" "); ok {
			if err := q.parseConcurrency(n); err != nil {
				return Quota{}, err
			}
			continue
		}
		if len(text) > maxText {
			return Quota{}, invalidQuota("limit", "it has %d bytes; write for example 100/1m", len(text))
		}
		rate, err := ParseRate(text)
		if err != nil {
			return Quota{}, invalidQuota("limit", "%v", err)
		}
		if slices.ContainsFunc(q.Rates, func(r Rate) bool { return r.Period == rate.Period }) {
			return Quota{}, invalidQuota("limits", "%s", samePeriod(rate.Period))
		}
		q.Rates = append(q.Rates, rate)
	}
	if len(q.Rates) == 0 && (burst != 0 || zone != "" || starts != "") {
		return Quota{}, invalidQuota("limit", "burst, zone and starts are for rates such as 100/1m, and there is none; remove them")
	}
	if err := q.validateCalendar(); err != nil {
		return Quota{}, err
	}
	return q, nil
}

// Texts returns the limits in the notation of ParseQuota.
func (q Quota) Texts() []string {
	if q.Unlimited {
		return []string{unlimited}
	}
	texts := rateTexts(q.Rates)
	if q.Concurrency > 0 {
		texts = append(texts, concurrency+" "+strconv.FormatInt(q.Concurrency, 10))
	}
	return texts
}

// Compile returns the limits that a client of the rule would have with another quota, none
// if that is unlimited. The client keeps its usage under each limit whose period does
// not change. An error is a *weir.InvalidError.
func (c *Entry) Compile(q Quota) ([]*weir.Compiled, error) {
	compiled, err := (&compiler{limits: map[weir.Limit]*weir.Compiled{}}).quota(c.Rule, q)
	if err != nil {
		return nil, err
	}
	for _, limit := range compiled {
		if cost := max(c.Cost, 1); cost > limit.Capacity() && limit.Algorithm() != weir.InFlight {
			return nil, invalidQuota("limit", "%s", tooCostly(cost, limit.Capacity()))
		}
		if wrong := c.tooSmall(limit); wrong != "" {
			return nil, invalidQuota("limit", "%s", wrong)
		}
	}
	return compiled, nil
}

func invalidQuota(field, format string, args ...any) error {
	return &weir.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// samePeriod and tooCostly say what is wrong with a quota, wherever it stands.
func samePeriod(period time.Duration) string {
	return fmt.Sprintf("another limit has the same period %s, and the two would share their usage; keep the smaller one", duration.Format(period))
}

func tooCostly(cost, capacity int64) string {
	return fmt.Sprintf("a request costs %d, but at most %d are allowed at once, so every request would be denied; lower the cost, or raise the limit or the burst", cost, capacity)
}
