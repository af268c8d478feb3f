package envoyconfig

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// limit reads one limit, and adds it to the node.
func (p *parser) limit(e *document.Element, n *Node, several bool) {
	f := p.fields(e, "a rate_limit", limitFields)
	if f == nil {
		return
	}
	l := Limit{Algorithm: weir.FixedWindow}
	var ok bool
	if l.Name, ok = p.text(f["name"], "name"); !ok {
		return
	}
	p.replaces(f["replaces"], n, l.Name)
	if p.truth(f["unlimited"], "unlimited") {
		p.unlimited(f, n, several)
		return
	}
	if !p.rate(e, f, &l) || !p.algorithm(f, &l) || !p.calendar(e, f, &l) {
		return
	}
	if slices.ContainsFunc(n.Limits, func(other Limit) bool { return other.Algorithm == l.Algorithm && other.Period == l.Period }) {
		p.errorf(e.Position, "rate_limits: another limit uses %s with the same period, so only the lower one has an effect; keep that one", l.Algorithm)
		return
	}
	n.Limits = append(n.Limits, l)
	if l.N == 0 {
		return
	}
	if _, err := l.compile(false, false); err != nil {
		p.errorf(e.Position, "rate_limit: %s", reason(err))
	}
}

// unlimited checks that nothing contradicts it.
func (p *parser) unlimited(f fields, n *Node, several bool) {
	n.Unlimited = true
	if several {
		p.errorf(f["unlimited"].Position, "unlimited: cannot be combined with other limits; write a single rate_limit with it")
	}
	if e := f["unit"]; e != nil {
		p.errorf(e.Position, "unit: cannot be combined with unlimited: true; remove one of them")
	}
	for _, field := range []string{"requests_per_unit", "algorithm", "burst", "zone", "starts"} {
		if e := f[field]; e != nil {
			p.warnf(e.Position, "%s: has no effect when unlimited is true; remove one of them", field)
		}
	}
}

// rate reads how many, and in which time.
func (p *parser) rate(e *document.Element, f fields, l *Limit) bool {
	n, good := p.number(f["requests_per_unit"], "requests_per_unit", 0, math.MaxUint32)
	if good && n == 0 {
		p.warnf(f.place("requests_per_unit", e), "requests_per_unit: 0 denies every request; write how many to allow, or unlimited: true")
	}
	l.N = uint32(n)
	text, ok := p.text(f["unit"], "unit")
	if !ok {
		return false
	}
	at := f.place("unit", e)
	if text == "" {
		p.errorf(at, "unit: required; write second, minute, hour, day, week, month, year, or a period such as 10s")
		return false
	}
	if l.Unit, l.Period, l.named, ok = parseUnit(text); !ok {
		p.errorf(at, "unit: %s is unknown; write second, minute, hour, day, week, month, year, or a period such as 10s", document.Quote(text))
	} else if !l.named {
		p.config.noteOwn(ownPeriod)
	}
	return ok && good
}

// algorithm reads how to count.
func (p *parser) algorithm(f fields, l *Limit) bool {
	if name, ok := p.text(f["algorithm"], "algorithm"); !ok {
		return false
	} else if name != "" {
		var err error
		if l.Algorithm, err = weir.ParseAlgorithm(name); err != nil {
			p.errorf(f["algorithm"].Position, "algorithm: %s", reason(err))
			return false
		}
	}
	var ok bool
	if l.Burst, ok = p.number(f["burst"], "burst", 1, weir.MaxUnits); !ok {
		return false
	}
	if l.Burst > 0 && l.Algorithm != weir.TokenBucket && l.Algorithm != weir.LeakyBucket {
		p.errorf(f["burst"].Position, "burst: %s has no burst; remove it, or write algorithm: token_bucket", l.Algorithm)
		return false
	}
	return true
}

// calendar reads where the periods of a limit begin.
func (p *parser) calendar(e *document.Element, f fields, l *Limit) bool {
	name, ok := p.text(f["zone"], "zone")
	starts, good := p.text(f["starts"], "starts")
	if !ok || !good {
		return false
	}
	zone := p.options.Calendar
	if name != "" {
		var err error
		if zone, err = notation.LoadZone(name); err != nil {
			p.errorf(f["zone"].Position, "zone: %v", err)
			return false
		}
	}
	if name == "" && starts == "" {
		l.follow(zone)
		return true
	}
	if zone == nil {
		zone = time.UTC
	}
	if err := l.onCalendar(zone, starts); err != nil {
		field := "zone"
		if starts != "" {
			field = "starts"
		}
		p.errorf(f.place(field, e), "%s: %s", field, reason(err))
		return false
	}
	return true
}

// follow lets a limit that says nothing of a calendar follow that of a zone, if its unit is from a day to a year.
func (l *Limit) follow(zone *time.Location) {
	if zone != nil && l.named && l.Period >= 24*time.Hour && l.Algorithm == weir.FixedWindow {
		_ = l.onCalendar(zone, "") // all of these are periods of the calendar
	}
}

// onCalendar makes the periods of a limit those of a calendar.
func (l *Limit) onCalendar(zone *time.Location, starts string) (err error) {
	if l.Zone, l.Starts = zone, starts; l.named {
		l.Period = l.Unit.onCalendar()
	}
	l.bounds, err = weir.Limit{Algorithm: l.Algorithm, N: 1, Period: l.Period, Zone: zone, Starts: starts}.Compile()
	return err
}

// replaces reads the names of limits that this one stands in for.
func (p *parser) replaces(e *document.Element, n *Node, own string) {
	if e == nil {
		return
	}
	if e.Kind != document.List {
		p.errorf(e.Position, "replaces: this is %s; write a list of names, as in [{name: other}]", e.Describe())
		return
	}
	for _, item := range e.Items {
		f := p.fields(item, "replaces", replacesFields)
		if f == nil {
			continue
		}
		name, ok := p.text(f["name"], "name")
		switch {
		case !ok:
		case name == "":
			p.errorf(item.Position, "replaces: a name is required; write the name of the limit that this one replaces")
		case name == own:
			p.errorf(item.Position, "replaces: %s is the name of this limit itself; write the name of another limit", document.Quote(name))
		case !slices.Contains(n.Replaces, name):
			n.Replaces = append(n.Replaces, name)
		}
	}
}

// reason is why a limit is not valid, without the words that come before it.
func reason(err error) string {
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return invalid.Reason
	}
	return err.Error()
}

// Unit is a period that Envoy has a name for. The numbers are those of its protocol.
type Unit uint8

const (
	Unknown Unit = iota // any other period
	Second
	Minute
	Hour
	Day
	Month
	Year
	Week
)

var units = [...]struct {
	name   string
	period time.Duration
}{
	Unknown: {"unknown", 0},
	Second:  {"second", time.Second},
	Minute:  {"minute", time.Minute},
	Hour:    {"hour", time.Hour},
	Day:     {"day", 24 * time.Hour},
	Month:   {"month", 30 * 24 * time.Hour},
	Year:    {"year", 365 * 24 * time.Hour},
	Week:    {"week", 7 * 24 * time.Hour},
}

// String returns the name as it is written in a file.
func (u Unit) String() string { return units[u.known()].name }

// Period is how long the unit is: a month has 30 days, a year 365. It is 0 for one that
// is Unknown.
func (u Unit) Period() time.Duration { return units[u.known()].period }

// onCalendar is the period of the unit where a calendar says how long it is.
func (u Unit) onCalendar() time.Duration {
	switch u {
	case Month:
		return weir.Month
	case Year:
		return weir.Year
	}
	return u.Period()
}

func (u Unit) known() Unit {
	if int(u) < len(units) {
		return u
	}
	return Unknown
}

// parseUnit reads a unit by its name in any case, or a period such as "10s", which may be
// as long as a unit.
func parseUnit(text string) (u Unit, period time.Duration, named, ok bool) {
	period, err := notation.ParseDuration(text)
	for u := Second; int(u) < len(units); u++ {
		if named := strings.EqualFold(text, units[u].name); named || err == nil && period == units[u].period {
			return u, units[u].period, named, true
		}
	}
	return Unknown, period, false, err == nil && period > 0
}
