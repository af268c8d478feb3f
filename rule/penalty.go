package rule

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/duration"
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
		return duration.Format(p.For) + " after a denial"
	}
	return fmt.Sprintf("%s after %d denials within %s", duration.Format(p.For), p.After, duration.Format(p.Within))
}

// MaxPenaltyAfter is the largest number of denials that can start a penalty. Each takes 8
// bytes per client.
const MaxPenaltyAfter = 1000

var penaltyFields = []string{"after", "within", "for"}

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
func (p *parser) penalty(e *document.Element) (q Penalty) {
	if e == nil {
		return q
	}
	if e.Kind != document.Mapping {
		q.For = p.span(e, "penalty")
		return q
	}
	before := p.found()
	f := p.fields(e, "penalty", penaltyFields)
	if f["for"] == nil {
		p.errorf("E007", e.Place, "penalty: for", "required; write how long the penalty lasts, such as 15m")
	}
	q.For = p.span(f["for"], "penalty: for")
	q.Within = p.span(f["within"], "penalty: within")
	if q.After = p.integer(f["after"], "E031", "penalty: after", 1, MaxPenaltyAfter); q.After == 1 {
		q.After = 0
	}
	if err := q.validate(); err != nil && p.found() == before {
		p.errorf("E031", cmp.Or(f["within"], e).Place, "penalty: within", "%s", reason(err))
	}
	return q
}

// span reads how long something lasts.
func (p *parser) span(e *document.Element, field string) time.Duration {
	text, ok := p.text(e, field, maxText)
	if !ok {
		return 0
	}
	d, err := duration.Parse(text)
	switch {
	case err != nil:
	case d <= 0:
		err = errors.New("it must be longer than 0; write for example 15m")
	default:
		err = weir.Limit{N: 1, Period: d}.Validate()
	}
	if err != nil {
		p.errorf("E031", e.Place, field, "%s", reason(err))
		return 0
	}
	return d
}

func penaltyElement(p Penalty) *document.Element {
	if p.For == 0 || p.After <= 1 {
		return unless(0, p.For, spanElement)
	}
	e := &document.Element{Kind: document.Mapping}
	e.Add("after", document.NewInteger(p.After))
	e.Add("within", spanElement(p.Within))
	e.Add("for", spanElement(p.For))
	return e
}

func spanElement(d time.Duration) *document.Element { return document.NewText(duration.Format(d)) }
