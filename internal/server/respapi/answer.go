package respapi

import (
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/headerfield"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/rule"
)

func millis(d time.Duration) int64 { return duration.Up(d, time.Millisecond) }

// count is how many of the conditions hold.
func count(conditions ...bool) (n int) {
	for _, holds := range conditions {
		if holds {
			n++
		}
	}
	return n
}

// writeVerdict answers with the fields of POST /v1/check, with the results of each limit
// only if the client wants them.
func (w *work) writeVerdict() {
	v := &w.verdict
	said := v.Answer()
	limit := weir.Decision{Limit: said.Limit, Remaining: said.Remaining, ResetAt: said.ResetAt, ResetAfter: said.ResetAfter}
	held := v.Hold != (weir.HoldID{})
	priority := v.Priority != rule.Normal
	w.dict(10 + count(!v.Allowed, said.Rule != "", said.Code != 0, said.Message != "", held, held, v.Unheld, priority, w.asked.results))
	w.boolAt("allowed", v.Allowed)
	w.textAt("reason", v.Reason.String())
	if !v.Allowed {
		w.integerAt("status", int64(said.Status))
	}
	if said.Rule != "" {
		w.textAt("rule", said.Rule)
	}
	if said.Code != 0 {
		w.integerAt("code", int64(said.Code))
	}
	if said.Message != "" {
		w.textAt("message", said.Message)
	}
	w.numbers(&limit, true, said.RetryAfter, v.Delay)
	if held {
		w.textAt("hold", v.Hold.String())
		w.textAt("hold_expires_at", v.HoldExpires.Time().Format(time.RFC3339Nano))
	}
	if v.Unheld {
		w.boolAt("unheld", true)
	}
	if priority {
		w.textAt("priority", v.Priority.String())
	}
	w.boolAt("degraded", v.Degraded != nil)
	w.integerAt("version", v.Version)
	if w.asked.results {
		w.text("results")
		w.array(len(v.Results))
		for i := range v.Results {
			w.writeResult(&v.Results[i])
		}
	}
}

// writeResult answers with what one limit says.
func (w *work) writeResult(r *engine.Result) {
	o := r.Override
	w.dict(13 + count(r.Local, r.Shadow, r.Soft, r.Excess > 0, r.Leave > 0, r.Penalty, r.Warning() > 0, o != nil))
	w.textAt("rule", r.Rule.ID)
	w.textAt("key", r.Key)
	w.textAt("algorithm", r.Quota.Algorithm().String())
	w.textAt("policy", w.server.policies.Of(r, w.server.options.Engine))
	w.boolAt("allowed", r.Allowed)
	if r.Shadow {
		w.boolAt("shadow", true)
	}
	if r.Soft {
		w.boolAt("soft", true)
	}
	w.boolAt("asked", r.Asked)
	if r.Local {
		w.boolAt("local", true)
	}
	w.integerAt("cost", r.Cost)
	if r.Excess > 0 {
		w.integerAt("excess", r.Excess)
	}
	if r.Leave > 0 {
		w.integerAt("leave", r.Leave)
	}
	w.numbers(&r.Decision, r.Asked, r.RetryAfter, r.Delay)
	if r.Penalty {
		w.boolAt("penalty", true)
	}
	if percent := r.Warning(); percent > 0 {
		w.integerAt("warning", int64(percent))
	}
	if o != nil {
		w.text("override")
		w.dict(2)
		w.textAt("id", o.ID)
		w.textAt("ends_at", o.Ends.Format(time.RFC3339Nano))
	}
}

// numbers are the six that an answer and each of its results have in common.
func (w *work) numbers(d *weir.Decision, asked bool, retry, delay time.Duration) {
	w.integerAt("limit", d.Limit)
	w.integerAt("remaining", d.Remaining)
	resetAt := int64(0)
	if asked {
		resetAt = headerfield.UnixSeconds(d.ResetAt)
	}
	w.integerAt("reset_at", resetAt)
	w.integerAt("reset_after_ms", millis(d.ResetAfter))
	w.text("retry_after_ms")
	if retry == weir.Never {
		w.null()
	} else {
		w.integer(millis(retry))
	}
	w.integerAt("delay_ms", millis(delay))
}

// writer appends answers. Those of RESP3 have types of their own; RESP2 has integers for
// booleans, and flat arrays for maps.
type writer struct {
	out    []byte
	resp3  bool
	failed bool // the answer to this command is an error
}

// number writes a line with a number; most have one digit or two.
func (w *writer) number(kind byte, n int64) {
	switch {
	case 0 <= n && n < 10:
		w.out = append(w.out, kind, '0'+byte(n), '\r', '\n')
	case 10 <= n && n < 100:
		w.out = append(w.out, kind, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	default:
		w.out = append(strconv.AppendInt(append(w.out, kind), n, 10), '\r', '\n')
	}
}

// simple writes a text of ours, without line breaks.
func (w *writer) simple(text string) { w.line('+', text) }

func (w *writer) line(kind byte, text string) {
	w.out = append(append(append(w.out, kind), text...), '\r', '\n')
}

// fail writes an error. Its first word is its code, by which programs tell errors apart. It
// may quote what the client sent.
func (w *writer) fail(code, text string) {
	w.failed = true
	w.out = append(append(append(w.out, '-'), code...), ' ')
	from := len(w.out)
	w.out = append(w.out, manage.Clip(text)...)
	for i, b := range w.out[from:] {
		if b == '\r' || b == '\n' {
			w.out[from+i] = ' '
		}
	}
	w.out = append(w.out, '\r', '\n')
}

func (w *writer) integer(n int64) { w.number(':', n) }

func (w *writer) text(s string) {
	w.number('$', int64(len(s)))
	w.out = append(append(w.out, s...), '\r', '\n')
}

func (w *writer) bytes(b []byte) {
	w.number('$', int64(len(b)))
	w.out = append(append(w.out, b...), '\r', '\n')
}

func (w *writer) bool(yes bool) {
	switch {
	case w.resp3 && yes:
		w.out = append(w.out, "#t\r\n"...)
	case w.resp3:
		w.out = append(w.out, "#f\r\n"...)
	case yes:
		w.out = append(w.out, ":1\r\n"...)
	default:
		w.out = append(w.out, ":0\r\n"...)
	}
}

func (w *writer) null() {
	if w.resp3 {
		w.out = append(w.out, "_\r\n"...)
		return
	}
	w.out = append(w.out, "$-1\r\n"...)
}

func (w *writer) array(n int) { w.number('*', int64(n)) }

// dict begins a map of n names, each with its value behind it.
func (w *writer) dict(n int) {
	if w.resp3 {
		w.number('%', int64(n))
		return
	}
	w.array(2 * n)
}

// Values with their names.

func (w *writer) textAt(name, value string) {
	w.text(name)
	w.text(value)
}

func (w *writer) integerAt(name string, n int64) {
	w.text(name)
	w.integer(n)
}

func (w *writer) boolAt(name string, yes bool) {
	w.text(name)
	w.bool(yes)
}
