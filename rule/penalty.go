package rule

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// Penalty denies all requests of a client under the rule for some time after the rule's
// limits have denied some. Further denials do not prolong it.
type Penalty struct {
	// For is how long the penalty lasts. Default 0: there is no penalty.
	For time.Duration

	// After is the number of denials that start it. Default 1.
	After int64

	// Within is the time in which they must happen, if After is more than 1.
	Within time.Duration
}

// String describes the penalty, as in "15m after 3 denials within 1m". It is "" if there is
// none.
func (p Penalty) String() string {
	switch {
	case p.For == 0:
		return ""
	case p.After <= 1:
		return notation.FormatDuration(p.For) + " after a denial"
	}
	return fmt.Sprintf("%s after %d denials within %s", notation.FormatDuration(p.For), p.After, notation.FormatDuration(p.Within))
}

// MaxPenaltyAfter is the largest number of denials that can start a penalty. Each takes 8
// bytes per client.
const MaxPenaltyAfter = 1000

var penaltyFields = newTable(
	integerField("after", "E031", 1, MaxPenaltyAfter, 1, func(p *Penalty) *int64 { return &p.After }),
	penaltySpan("within", func(p *Penalty) *time.Duration { return &p.Within }),
	penaltySpan("for", func(p *Penalty) *time.Duration { return &p.For }),
)

func penaltySpan(name string, of func(*Penalty) *time.Duration) field[Penalty] {
	return field[Penalty]{name,
		func(p *parser, e *document.Element, path string, to *Penalty) {
			*of(to) = p.span(e, "E031", path, isPenalty)
		},
		func(from *Penalty) *document.Element { return unless(0, *of(from), spanElement) }}
}

// isPenalty says what is wrong with how long a penalty lasts; "" if nothing is.
func isPenalty(d time.Duration, _ string) string {
	if d <= 0 {
		return "it must be longer than 0; write for example 15m"
	}
	if err := (weir.Limit{N: 1, Period: d}).Validate(); err != nil {
		return reason(err)
	}
	return ""
}

// limits are what a penalty is counted with: the denials, if it takes several, and the
// penalty itself, of which there can be one. Their names contain a colon, which the id of a
// rule does not, so they share no usage with a rule.
func (p Penalty) limits(id string) (denials, running weir.Limit) {
	denials = weir.Limit{Name: id + ":denials", Algorithm: weir.SlidingLog, N: max(1, p.After), Period: p.Within}
	return denials, weir.Limit{Name: id + ":penalty", N: 1, Period: p.For}
}

// penalty compiles the limits of a rule's penalty.
func (c *compiler) penalty(out *Entry) error {
	p := out.Rule.Penalty
	if p == (Penalty{}) {
		return nil
	}
	if err := p.validate(); err != nil {
		return err
	}
	denials, running := p.limits(out.ID)
	var err error
	if p.After > 1 {
		if out.denials, err = c.limit(denials); err != nil {
			return err
		}
	}
	out.penalty, err = c.limit(running)
	return err
}

func (p Penalty) validate() error {
	switch {
	case p.After < 0 || p.After > MaxPenaltyAfter:
		return invalidQuota("penalty: after", "%d is out of range; write 1 to %d", p.After, MaxPenaltyAfter)
	case p.After > 1 && p.Within == 0:
		return invalidQuota("penalty: within", "required; write the time in which %d denials start the penalty, such as 1m", p.After)
	case p.After <= 1 && p.Within != 0:
		return invalidQuota("penalty: within", "one denial starts the penalty, whenever it happens; remove within, or write after: 2 or more")
	}
	return nil
}

// PenaltyLimits returns the limits that a penalty is counted with: the denials that start
// it, or nil if one does, and the penalty itself, or nil if the rule has none. The penalty
// is of one unit, which is taken while it lasts.
func (c *Entry) PenaltyLimits() (denials, penalty *weir.Compiled) { return c.denials, c.penalty }

// penalty reads how long it lasts, or its fields.
func (p *parser) penalty(e *document.Element, field string, r *Rule) {
	if e.Kind != document.Mapping {
		r.Penalty.For = p.span(e, "E031", field, isPenalty)
		return
	}
	before := p.found()
	f := penaltyFields.readFields(p, e, field, &r.Penalty)
	if f["for"] == nil {
		p.errorf("E007", e.Position, "penalty: for", "required; write how long the penalty lasts, such as 15m")
	}
	if err := r.Penalty.validate(); err != nil && p.found() == before {
		p.errorf("E031", cmp.Or(f["within"], e).Position, "penalty: within", "%s", reason(err))
	}
}

func penaltyElement(r *Rule) *document.Element {
	if r.Penalty.For == 0 || r.Penalty.After <= 1 {
		return unless(0, r.Penalty.For, spanElement)
	}
	return penaltyFields.element(&r.Penalty)
}
