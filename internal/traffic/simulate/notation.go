package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// maxCount is the largest number in a term. The rate of a short stretch may
// well be above MaxRequests a second.
const maxCount = 1_000_000_000

const example = "write for example 50@10s, 3/1s@0s..1m, or the name of a pattern"

// ParseTraffic reads traffic as people write it; see the package comment.
// Patterns are scaled to the limit; the seed is for those that are random. More than so many
// requests, or MaxRequests, are an error, before all of them are made.
func ParseTraffic(text string, limit weir.Limit, seed uint64, most int) (Traffic, error) {
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
		p.make(c, limit, seed)
		return c.err
	}
	amount, when, ok := strings.Cut(term, "@")
	switch {
	case term == "":
		return fmt.Errorf("the term is empty; %s", example)
	case !ok:
		if near := notation.Nearest(term, patternNames()); near != "" {
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
		c.spread(n, from, to)
		return c.err
	}
	period, err := parseInstant(per)
	if err != nil {
		return err
	}
	if period == 0 {
		return fmt.Errorf("%q is not a valid period; write for example 3/1s", per)
	}
	c.rate(n, period, from, to)
	return c.err
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
	d, err := notation.ParseDuration(s)
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

// Pattern is traffic with a name, scaled to a limit of N in a period.
type Pattern struct {
	Name  string
	About string // one line

	make func(c *collector, limit weir.Limit, seed uint64)
}

// Patterns returns all patterns, in the order in which to read about them.
func Patterns() []Pattern {
	return []Pattern{
		{"steady", "exactly the rate of the limit, for four periods", func(c *collector, l weir.Limit, _ uint64) { c.rates(l.N, l) }},
		{"overload", "twice the rate of the limit, for four periods", func(c *collector, l weir.Limit, _ uint64) { c.rates(2*l.N, l) }},
		{"burst", "2N at once, repeated twice, after one and a half periods each", burst},
		{"boundary", "N in the last quarter of a window, N in the first of the next", boundary},
		{"sawtooth", "a rate that rises from 0 to twice the limit, repeatedly", sawtooth},
		{"poisson", "random arrivals at the rate, for four periods (see --seed)", poisson},
	}
}

func patternNamed(name string) (Pattern, bool) {
	for _, p := range Patterns() {
		if p.Name == name {
			return p, true
		}
	}
	return Pattern{}, false
}

func patternNames() []string {
	var names []string
	for _, p := range Patterns() {
		names = append(names, p.Name)
	}
	return names
}

// rates adds n requests in each of four periods, evenly.
func (c *collector) rates(n int64, limit weir.Limit) {
	p := periodsOf(limit).first()
	for i := range 4 {
		c.spread(n, p[i], p[i+1])
	}
}

func burst(c *collector, limit weir.Limit, _ uint64) {
	p := periodsOf(limit).first()
	for _, at := range []weir.Micros{0, p[1] + (p[2]-p[1])/2, p[3]} {
		c.spread(2*limit.N, at, at)
	}
}

// boundary is the attack on fixed windows: each half is within the limit of its
// own window, and both are within half a period.
func boundary(c *collector, limit weir.Limit, _ uint64) {
	p := periodsOf(limit).first()
	c.spread(limit.N, p[1]-max(1, p[1]/4), p[1])
	c.spread(limit.N, p[1], p[1]+max(1, (p[2]-p[1])/4))
}

// sawtooth has two teeth of 2N requests in two periods. When a rate climbs
// evenly, the number of requests so far grows with the square of the time.
func sawtooth(c *collector, limit weir.Limit, _ uint64) {
	p := periodsOf(limit).first()
	for tooth := range 2 {
		from, to := p[2*tooth], p[2*tooth+2]
		c.each(2*limit.N, func(i int64) weir.Micros {
			return from + weir.Micros(math.Sqrt(float64(i)/float64(2*limit.N))*float64(to-from))
		})
	}
}

// poisson draws the times rather than the gaps: given their number, the
// arrivals of a Poisson process are independent and uniform. It needs integers
// only, so that a seed means the same traffic on every machine.
func poisson(c *collector, limit weir.Limit, seed uint64) {
	end := int64(periodsOf(limit).first()[4])
	random := rand.New(rand.NewPCG(seed, 0))
	c.each(4*limit.N, func(int64) weir.Micros { return weir.Micros(random.Int64N(end)) })
}

// MaxLog is the longest log that ParseLog reads, in bytes.
const MaxLog = 64 << 20

const maxClient = 200 // bytes of a client's name in a log

const logExample = "write a time, and optionally a client and a cost, as in \"2026-11-15T10:30:15.250Z alice 2\", \"10:30:15\" or \"1.5s\""

// ParseLog reads a log with times: a line for each request, with its time and, if
// need be, the client and the cost. Empty lines, and those that begin with #, are
// left out. A line may be out of order.
//
// A time is an instant (2026-11-15T10:30:15.250Z, or Unix seconds with a fraction),
// a time of day (10:30:15.250), or a length of time since the start (1.5s), in all
// lines the same. Instants are shown as time since midnight UTC of the first day:
// windows that divide a day are where they really were. If the limit has periods of the
// calendar, they stay instants, and a time of day is one of January 1, 2026, UTC.
//
// The limit is what the log is to be played against: the two together are bounded.
func ParseLog(name, text string, limit weir.Limit) (Traffic, error) {
	if len(text) > MaxLog {
		return Traffic{}, fmt.Errorf("%s: larger than %d MiB; use a shorter log, or weir replay", name, MaxLog>>20)
	}
	var c collector
	var kind timeKind
	periods := periodsOf(limit)
	number, midnight := 0, weir.Micros(-1)
	for line := range strings.Lines(text) {
		number++
		r, k, err := parseLogLine(line)
		switch {
		case err == nil && k == noTime:
			continue
		case err == nil && kind != noTime && k != kind:
			err = fmt.Errorf("the time is %s, but the lines before have %s; write all times in the same form", k, kind)
		case err == nil:
			kind = k
			switch {
			case periods.calendar != nil && k == ofDay:
				c.start = theYear
			case k == sinceZero:
				c.start = periods.start()
			case periods.calendar == nil && k == instant:
				if midnight < 0 || r.At < midnight {
					midnight = shiftDay(c.requests, midnight, r.At)
				}
				r.At -= midnight
			}
			c.addRequest(r)
			err = c.err
		}
		if err != nil {
			return Traffic{}, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if len(c.requests) == 0 {
		return Traffic{}, fmt.Errorf("%s: no requests; %s", name, logExample)
	}
	t := Traffic{Text: "the log " + name, Requests: c.sorted()}
	if wordsFor(limit, t.Requests) > maxWords {
		return Traffic{}, fmt.Errorf("%s: the clients need more than %d MB in a log or in sub-windows; use fewer clients, a smaller limit, or fewer buckets", name, maxWords*8>>20)
	}
	if midnight >= 0 {
		day := time.UnixMicro(int64(midnight)).UTC().Format(time.DateOnly)
		t.Notes = []string{"times are from midnight UTC of " + day + " on."}
	}
	return t, nil
}

// shiftDay returns the midnight before an instant, and moves the requests that are
// there already, should it be an earlier one than theirs.
func shiftDay(requests []Request, old, at weir.Micros) weir.Micros {
	midnight := at - at%day
	for i := range requests {
		requests[i].At += old - midnight
	}
	return midnight
}

// timeKind is how a time is written.
type timeKind string

const (
	noTime    timeKind = ""
	instant   timeKind = "an instant"
	ofDay     timeKind = "a time of day"
	sinceZero timeKind = "a length of time"
)

func parseLogLine(line string) (Request, timeKind, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return Request{}, noTime, nil
	}
	at, kind, err := parseLogTime(fields[0])
	if err != nil {
		return Request{}, noTime, err
	}
	r := Request{At: at, Key: "client", Cost: 1}
	if len(fields) > 1 {
		r.Key = fields[1]
	}
	if len(fields) > 2 {
		r.Cost, err = strconv.ParseInt(fields[2], 10, 64)
	}
	switch {
	case err != nil || r.Cost < 1 || r.Cost > weir.MaxUnits:
		return Request{}, noTime, fmt.Errorf("%q is not a cost; write a whole number from 1 to %d", document.Clip(fields[2], 40), int64(weir.MaxUnits))
	case len(r.Key) > maxClient:
		return Request{}, noTime, fmt.Errorf("the client's name has more than %d bytes; shorten it", maxClient)
	case len(fields) > 3:
		return Request{}, noTime, fmt.Errorf("%q is unexpected; %s", document.Clip(fields[3], 40), logExample)
	}
	return r, kind, nil
}

func parseLogTime(s string) (weir.Micros, timeKind, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil && t.Unix() >= 0 && t.Unix() < 1<<32 {
		return weir.MicrosOf(t), instant, nil
	}
	if t, err := time.Parse("15:04:05.999999999", s); err == nil {
		return weir.Micros(t.Sub(t.Truncate(24 * time.Hour)).Microseconds()), ofDay, nil
	}
	if at, ok := unixSeconds(s); ok {
		return at, instant, nil
	}
	if d, err := notation.ParseDuration(s); err == nil {
		return weir.Micros(d.Microseconds()), sinceZero, nil
	}
	return 0, noTime, fmt.Errorf("%q is not a time; %s", document.Clip(s, 40), logExample)
}

// unixSeconds reads seconds since 1970 with a fraction, to the microsecond.
func unixSeconds(s string) (weir.Micros, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseUint(whole, 10, 32)
	if err != nil || len(whole) < 9 {
		return 0, false
	}
	fraction = (fraction + "000000")[:6]
	micros, err := strconv.ParseUint(fraction, 10, 32)
	return weir.Micros(seconds*1_000_000 + micros), err == nil
}
