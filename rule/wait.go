package rule

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/duration"
)

// Wait lets requests wait for a place of Concurrency instead of being denied: in the gateway, in
// middleware, and with a Gate of package engine. A check of the service never waits.
type Wait struct {
	// UpTo is how long a request waits at most. Default 0: requests do not wait.
	UpTo time.Duration

	// Queued is how many requests of a client wait at the same time at most. Default
	// DefaultQueued.
	Queued int64
}

const (
	DefaultQueued = 100
	MaxQueued     = 10_000
	MaxWait       = time.Minute

	minWait = time.Millisecond
)

// Most is Queued or its default.
func (w Wait) Most() int {
	if w.Queued == 0 {
		return DefaultQueued
	}
	return int(w.Queued)
}

func (w Wait) validate() error {
	switch {
	case w == (Wait{}):
	case !isWait(w.UpTo):
		return invalidQuota("wait: up_to", "%s", noWait(duration.Format(w.UpTo)))
	case w.Queued < 0 || w.Queued > MaxQueued:
		return invalidQuota("wait: queued", "%d is out of range; write 1 to %d", w.Queued, MaxQueued)
	}
	return nil
}

func isWait(d time.Duration) bool { return minWait <= d && d <= MaxWait }

func noWait(text string) string {
	return fmt.Sprintf("%s is out of range; write %s to %s", text, duration.Format(minWait), duration.Format(MaxWait))
}

var waitFields = []string{"up_to", "queued"}

// wait reads how long a request waits, or the fields.
func (p *parser) wait(r *pending) {
	e := r.fields["wait"]
	switch {
	case e == nil:
		return
	case e.Kind != document.Mapping:
		r.Wait.UpTo = p.upTo(e, "wait")
		return
	}
	f := p.fields(e, "wait", waitFields)
	if f["up_to"] == nil {
		p.errorf("E007", e.Place, "wait: up_to", "required; write how long a request waits at most, such as 2s")
	}
	r.Wait.UpTo = p.upTo(f["up_to"], "wait: up_to")
	if r.Wait.Queued = p.integer(f["queued"], "E037", "wait: queued", 1, MaxQueued); r.Wait.Queued == DefaultQueued {
		r.Wait.Queued = 0
	}
}

func (p *parser) upTo(e *document.Element, field string) time.Duration {
	text, ok := p.text(e, field, maxText)
	if !ok {
		return 0
	}
	d, err := duration.Parse(text)
	switch {
	case err != nil:
		p.errorf("E037", e.Place, field, "%v", err)
	case !isWait(d):
		p.errorf("E037", e.Place, field, "%s", noWait(text))
	default:
		return d
	}
	return 0
}

func waitElement(w Wait) *document.Element {
	if w.UpTo == 0 || w.Queued == 0 {
		return unless(0, w.UpTo, spanElement)
	}
	e := &document.Element{Kind: document.Mapping}
	e.Add("up_to", spanElement(w.UpTo))
	e.Add("queued", document.NewInteger(w.Queued))
	return e
}
