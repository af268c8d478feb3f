package rule

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Priority tells how important a request is; a greater one is more important. The zero value
// is none, which counts as Normal.
type Priority uint8

const (
	Low Priority = 1 + iota
	Normal
	High
	Critical
)

// priorityNames begin with the most important.
var priorityNames = []string{"critical", "high", "normal", "low"}

var prioritiesElsewhere = map[string]string{
	"medium": "normal", "default": "normal", "critical_plus": "critical", "urgent": "critical", "highest": "critical",
	"background": "low", "batch": "low", "sheddable": "low", "lowest": "low",
}

// ParsePriority parses "critical", "high", "normal" or "low".
func ParsePriority(name string) (Priority, error) {
	i, err := parseWord(priorityNames, prioritiesElsewhere, document.Clip(name, 40))
	if err != nil {
		return 0, err
	}
	return Critical - Priority(i), nil
}

// String returns the name, which ParsePriority accepts, or "" for none.
func (p Priority) String() string {
	if p == 0 {
		return ""
	}
	if p > Critical {
		return fmt.Sprintf("Priority(%d)", uint8(p))
	}
	return priorityNames[Critical-p]
}

// MarshalText returns the name, so that JSON contains the name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses a name as ParsePriority does; "" is none.
func (p *Priority) UnmarshalText(text []byte) (err error) {
	if *p = 0; len(text) > 0 {
		*p, err = ParsePriority(string(text))
	}
	return err
}

// PriorityOf returns the priority that the rule gives to the requests of a client: that of
// the client's override, else of its tier, else of the rule. It is 0 if none of them has
// one. The identity is the result of [Entry.Identity].
func (c *Entry) PriorityOf(identity, tier string) Priority {
	if !c.special {
		return c.Priority
	}
	return c.specialPriority(identity, tier)
}

func (c *Entry) specialPriority(identity, tier string) Priority {
	return cmp.Or(c.overrides[identity].priority, c.tiers[tier].priority, c.Priority)
}

// isPrioritizing reports whether the rule gives a priority to requests of some client.
func (r *Rule) isPrioritizing() bool {
	return r.Priority != 0 || r.hasQuota(func(q Quota) bool { return q.Priority != 0 })
}

// validatePriorities is for sets that were not parsed.
func (r *Rule) validatePriorities() error {
	wrong := r.Priority
	if wrong > Critical || r.hasQuota(func(q Quota) bool { wrong = q.Priority; return wrong > Critical }) {
		return invalidQuota("priority", "%d is unknown; choose one of Low, Normal, High and Critical", wrong)
	}
	return nil
}

// Shares are how much of each limit the requests of a priority can use, as in
// Shares{Low: 500, Normal: 800}; the rest is for those above them. Critical requests can
// always use all of it.
type Shares [High + 1]Share

// Share is a part of a limit, in tenths of a percent. The zero value is all of it.
type Share int16

const allOfIt Share = 1000

// of is the share of a priority.
func (s *Shares) of(p Priority) Share {
	if p == 0 {
		p = Normal
	}
	if p > High {
		return allOfIt
	}
	return cmp.Or(s[p], allOfIt)
}

// ParseShare parses a share of a limit, as in "80%" or "99.5%".
func ParseShare(text string) (Share, error) {
	digits, ok := strings.CutSuffix(text, "%")
	whole, tenths, pointed := strings.Cut(digits, ".")
	if !pointed {
		tenths = "0"
	}
	percent, err := strconv.Atoi(whole)
	tenth, err2 := strconv.Atoi(tenths)
	share := Share(10*percent + tenth)
	switch {
	case err != nil || err2 != nil || whole != strconv.Itoa(percent) || len(tenths) != 1 || percent > 100 || share < 1 || share > allOfIt:
		return 0, fmt.Errorf("%s is no share of the limit; write 0.1%% to 100%% with at most one decimal, such as 80%% or 99.5%%", document.Quote(document.Clip(text, 40)))
	case !ok:
		return 0, fmt.Errorf("%s has no percent sign; write %s", document.Quote(text), share)
	case share == allOfIt:
		return 0, nil
	}
	return share, nil
}

// String returns the notation of ParseShare.
func (s Share) String() string {
	s = cmp.Or(s, allOfIt)
	if s%10 == 0 {
		return strconv.Itoa(int(s/10)) + "%"
	}
	return strconv.Itoa(int(s/10)) + "." + strconv.Itoa(int(s%10)) + "%"
}

// String returns the shares that are given, as in "low 50%, normal 80%".
func (s *Shares) String() string {
	var given []string
	for i, name := range shareFields.names {
		if share := s[Low+Priority(i)]; share != 0 {
			given = append(given, name+" "+share.String())
		}
	}
	return strings.Join(given, ", ")
}

// Leave returns how many units of a limit of the rule a request leaves for those with a
// higher priority: the part of the capacity that is beyond its share, rounded up.
func (c *Entry) Leave(limit *weir.Compiled, p Priority) int64 { return c.Shares.leave(limit, p) }

func (s *Shares) leave(limit *weir.Compiled, p Priority) int64 {
	left := int64(allOfIt - s.of(p))
	return (limit.Capacity()*left + int64(allOfIt) - 1) / int64(allOfIt) // the capacity is at most 2^50
}

// tooSmall says which share of a limit is smaller than what a request costs; "" if none is.
func (r *Rule) tooSmall(limit *weir.Compiled) string {
	cost := max(r.Cost, 1)
	if limit.Algorithm() == weir.InFlight {
		cost = 1
	}
	for p := Low; p < Critical; p++ {
		if fits := limit.Capacity() - r.Shares.leave(limit, p); fits < cost && cost <= limit.Capacity() {
			return fmt.Sprintf("%s of the capacity of %d for %s is %d, but a request costs %d, so these requests would always be denied; raise the share, the limit or the burst, or lower the cost",
				r.Shares.of(p), limit.Capacity(), p, fits, cost)
		}
	}
	return ""
}

// outOfOrder says which priority has a smaller share than one below it.
func (s *Shares) outOfOrder() (Priority, string) {
	for p := Normal; p < Critical; p++ {
		if lower := p - 1; s.of(p) < s.of(lower) {
			text := fmt.Sprintf("the share of %s, %s, is smaller than that of %s, %s", p, s.of(p), lower, s.of(lower))
			if s[lower] == 0 {
				return p, text + fmt.Sprintf(", which is all because it is not given; give %s a share, too", lower)
			}
			return p, text + "; a higher priority needs at least the share of a lower one"
		}
	}
	return 0, ""
}

// validate is for sets that were not parsed.
func (s *Shares) validate() error {
	for p, share := range s {
		if share < 0 || share > allOfIt || p == 0 && share != 0 {
			return invalidQuota("shares", "%d is no share of a limit; write 1 to 1000 tenths of a percent for Low, Normal and High", share)
		}
	}
	if _, wrong := s.outOfOrder(); wrong != "" {
		return invalidQuota("shares", "%s", wrong)
	}
	return nil
}

// shares reads the share of each priority.
func (p *parser) shares(e *document.Element, _ string, r *Rule) {
	named := *e
	named.Members = nil
	for _, m := range e.Members {
		if m.Name.Text == Critical.String() {
			p.errorf("E036", m.Name.Position, "shares: critical", "critical requests can always use all of the limit; remove it")
			continue
		}
		named.Members = append(named.Members, m)
	}
	f := p.fields(&named, "shares", shareFields.names)
	if f != nil && len(e.Members) == 0 {
		p.errorf("E006", e.Position, "shares", "it is empty; write for example {low: 50%%, normal: 80%%}, or remove it")
	}
	before := p.found()
	shareFields.readAll(p, f, "shares: ", &r.Shares)
	if p.found() > before {
		r.Shares = Shares{} // what is wrong with them was said
		return
	}
	if which, wrong := r.Shares.outOfOrder(); wrong != "" {
		p.errorf("E036", f[which.String()].Position, "shares: "+which.String(), "%s", wrong)
		r.Shares = Shares{}
	}
}

// checkShares finds a share of a quota's limit that is smaller than the cost.
func (p *parser) checkShares(r *pending, q placedQuota, limit *weir.Compiled) {
	wrong := r.tooSmall(limit)
	if wrong == "" {
		return
	}
	at := q.at
	if q.whose == "" {
		at = r.fields["shares"].Position
	}
	p.errorf("E036", at, q.whose+"shares", "%s", wrong)
}

var shareFields = newTable(shareField(Low), shareField(Normal), shareField(High))

func shareField(of Priority) field[Shares] {
	return field[Shares]{of.String(), func(p *parser, e *document.Element, path string, s *Shares) {
		if text, ok := p.text(e, path, maxText); ok {
			var err error
			if s[of], err = ParseShare(text); err != nil {
				p.errorf("E036", e.Position, path, "%v", err)
			}
		}
	}, func(s *Shares) *document.Element {
		return unless(0, s[of], func(share Share) *document.Element { return document.NewText(share.String()) })
	}}
}
