package rule

import (
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
		return invalidQuota("wait: up_to", "%s", outOfRange(duration.Format(w.UpTo), minWait, MaxWait))
	case w.Queued < 0 || w.Queued > MaxQueued:
		return invalidQuota("wait: queued", "%d is out of range; write 1 to %d", w.Queued, MaxQueued)
	}
	return nil
}

func isWait(d time.Duration) bool { return minWait <= d && d <= MaxWait }

var waitFields = newTable(
	field[Wait]{"up_to", (*parser).upTo, func(w *Wait) *document.Element { return spanElement(w.UpTo) }},
	integerField("queued", "E037", 1, MaxQueued, DefaultQueued, func(w *Wait) *int64 { return &w.Queued }),
)

// wait reads how long a request waits, or the fields.
func (p *parser) wait(e *document.Element, field string, r *Rule) {
	if e.Kind != document.Mapping {
		p.upTo(e, field, &r.Wait)
	} else if f := waitFields.read(p, e, field, &r.Wait); f["up_to"] == nil {
		p.errorf("E007", e.Place, "wait: up_to", "required; write how long a request waits at most, such as 2s")
	}
}

func (p *parser) upTo(e *document.Element, field string, w *Wait) {
	w.UpTo = p.span(e, "E037", field, func(d time.Duration, text string) string {
		if isWait(d) {
			return ""
		}
		return outOfRange(text, minWait, MaxWait)
	})
}

func waitElement(r *Rule) *document.Element {
	if r.Wait.UpTo == 0 || r.Wait.Queued == 0 {
		return unless(0, r.Wait.UpTo, spanElement)
	}
	return waitFields.element(&r.Wait)
}
