package rule

import (
	"errors"
	"math"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/duration"
)

// checkLimits compiles every limit of a rule, as Compile will.
func (p *parser) checkLimits(r *pending) {
	limited := false
	for _, q := range r.quotas {
		limited = limited || !q.Unlimited
		p.checkPeriods(q)
		p.checkQuota(r, q)
	}
	if !limited {
		p.errorf("E024", r.fields["limit"].Place, "limit", "nobody is limited by this rule; write a limit, or one for a tier, or remove the rule")
	}
}

// checkPeriods finds limits that would share their count.
func (p *parser) checkPeriods(q placedQuota) {
	first := map[time.Duration]document.Place{}
	for i, rate := range q.Rates {
		if _, twice := first[rate.Period]; twice {
			p.errorf("E015", q.rates[i], q.whose+"limits", "there is a limit for %s already, and the two would share what a client has used; keep the smaller", duration.Format(rate.Period))
		}
		first[rate.Period] = q.rates[i]
	}
}

func (p *parser) checkQuota(r *pending, q placedQuota) {
	capacity := int64(math.MaxInt64)
	for i, rate := range q.Rates {
		compiled, err := weir.Limit{
			Name: r.ID, Algorithm: r.Algorithm, N: rate.N, Period: rate.Period, Burst: q.Burst,
			Buckets: r.Buckets, Shape: r.Shape, CountDenied: r.CountDenied,
		}.Compile()
		if err != nil {
			p.limitError(r, q, q.rates[i], err)
			continue
		}
		capacity = min(capacity, compiled.Capacity())
	}
	if cost := max(r.Cost, 1); cost > capacity && !q.Unlimited {
		at, field := q.at, q.whose
		if q.whose == "" {
			at = r.fields["cost"].Place
		}
		p.errorf("E016", at, field+"cost", "a request costs %d, and never more than %d are admitted at once, so every one would be refused; lower the cost, or raise the limit or the burst", cost, capacity)
	}
}

// limitError puts an error of package weir where the field at fault stands.
func (p *parser) limitError(r *pending, q placedQuota, at document.Place, err error) {
	var invalid *weir.InvalidError
	if !errors.As(err, &invalid) {
		p.errorf("E013", at, q.whose+"limit", "%v", err)
		return
	}
	code, whose := "E013", q.whose
	switch field := invalid.Field; field {
	case "burst":
		if q.burst != (document.Place{}) {
			at = q.burst
		}
		if !leaks(r.Algorithm) {
			code = "E014"
		}
	case "buckets", "shape", "count_denied":
		if e := r.fields[field]; e != nil {
			at = e.Place
		}
		whose = ""
		if field != "buckets" || r.Algorithm != weir.SlidingBuckets {
			code = "E014"
		}
	}
	p.errorf(code, at, whose+invalid.Field, "%s", invalid.Reason)
}

// leaks is whether an algorithm has a burst.
func leaks(a weir.Algorithm) bool { return a == weir.TokenBucket || a == weir.LeakyBucket }
