package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/adaptive"
	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/rule"
)

// SetAdaptive sets Adaptive of routes by settings such as "5-1000", for all routes, or
// "/api=5-1000" for one, in whichever order.
func SetAdaptive(routes []Route, settings []string) error {
	settings = slices.Clone(settings)
	slices.SortStableFunc(settings, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "="), strings.Count(b, "=")) // those for all routes first
	})
	for _, text := range settings {
		name, bounds, one := strings.Cut(text, "=")
		if !one {
			name, bounds = "", text
		}
		least, most, both := strings.Cut(bounds, "-")
		low, err := strconv.Atoi(least)
		high, errHigh := strconv.Atoi(most)
		if !both || err != nil || errHigh != nil {
			return fmt.Errorf("gateway: %q is not a minimum and a maximum; write for example 5-1000, or /api=5-1000 for one route", clip(text))
		}
		b := adaptive.Bounds{Min: low, Max: high}
		if b == (adaptive.Bounds{}) {
			return errors.New("gateway: 0-0 limits nothing; leave it out, or write for example 5-1000")
		}
		found := false
		for i := range routes {
			if !one || routes[i].Name() == routeName(name) {
				routes[i].Adaptive, found = b, true
			}
		}
		if !found {
			return fmt.Errorf("gateway: no route is named %q; write the host and path of a route as in its upstream, or / for the one without", clip(name))
		}
	}
	return nil
}

// routeName is the Name of the route that a text before an upstream makes.
func routeName(text string) string {
	host, path, below := strings.Cut(text, "/")
	r := Route{Host: strings.ToLower(host)}
	if below && path != "" {
		r.Path = "/" + path
	}
	return r.Name()
}

// setAdaptive gives an upstream its limiter. Its capacity is one, whichever routes use it.
func (o *origin) setAdaptive(b adaptive.Bounds, first bool) error {
	switch {
	case first:
		o.bounds, o.adaptive = b, b.Limiter()
	case o.bounds != b:
		return fmt.Errorf("gateway: two routes to %s have different adaptive limits; write the same for both", o.name)
	}
	return nil
}

// acquire takes a place at the upstream that was chosen. It returns false if the upstream has
// as many requests in flight as it can answer.
func (x *exchange) acquire() bool {
	l := x.choice.adaptive
	if l == nil {
		return true
	}
	now := x.gateway.now()
	ok := l.Enter(now, priority.Class(x.limited.Priority-rule.Low), x.client, &x.place)
	if !ok {
		x.choice.overloaded(now, x.gateway)
	}
	return ok
}

// wait says that the request waits for its client, and resume that this has moved some bytes. That is false
// if there is no place any more. Without an adaptive limit they do nothing.
func (x *exchange) wait() {
	if x.choice.target != nil && x.choice.adaptive != nil {
		x.place.Wait(x.gateway.now())
	}
}

func (x *exchange) resume(n int) bool {
	return x.choice.target == nil || x.choice.adaptive == nil || x.place.Resume(x.gateway.now(), n)
}

// outcome is what the end of the exchange says about the upstream.
func (x *exchange) outcome() adaptive.Outcome {
	if x.body.failed() != nil {
		return adaptive.Ignored // whatever the upstream made of half a request
	}
	return adaptive.OutcomeOf(x.Context, x.ended, x.status)
}

// overloaded writes to the log from time to time.
func (o *origin) overloaded(now instant, g *Gateway) {
	last := o.shed.Load()
	if last != 0 && now-instant(last) < quiet || !o.shed.CompareAndSwap(last, int64(max(now, 1))) {
		return
	}
	s := o.adaptive.Stats()
	g.options.Logger.Warn("upstream overloaded", "upstream", o.name, "limit", s.Limit, "in_flight", s.InFlight, "denied", s.Denied)
}

// AdaptiveLimit is how the adaptive limit of an upstream is now.
type AdaptiveLimit struct {
	Upstream string
	adaptive.Stats
}

// AdaptiveLimits returns those of all upstreams that have one.
func (g *Gateway) AdaptiveLimits() (all []AdaptiveLimit) {
	for _, o := range g.table.origins {
		if o.adaptive != nil {
			all = append(all, AdaptiveLimit{o.name, o.adaptive.Stats()})
		}
	}
	return all
}

var errOverloaded = errors.New("gateway: the upstream has as many requests in flight as it can answer")
