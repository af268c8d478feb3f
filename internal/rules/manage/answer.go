package manage

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Fields takes the fields of an answer, in their order. HTTP and RESP have the same ones; each
// writes them in its own notation.
type Fields interface {
	Text(name, value string)
	Int(name string, n int64)
	Bool(name string, yes bool)
	Null(name string)
	Time(name string, at time.Time)
	Object(name string) // begins; without a name it is one of a list
	List(name string, n int)
	End(list bool)
}

// TellVerdict tells what a verdict says, with what each limit says if it is wanted.
func TellVerdict(f Fields, v *engine.Verdict, results bool) {
	a := v.Answer()
	f.Object("")
	f.Bool("allowed", v.Allowed)
	f.Text("reason", v.Reason.String())
	tellInt(f, "status", int64(a.Status))
	tellText(f, "rule", a.Rule)
	tellText(f, "level", a.Level)
	tellInt(f, "code", int64(a.Code))
	tellText(f, "message", a.Message)
	tellNumbers(f, &weir.Decision{Limit: a.Limit, Remaining: a.Remaining, Reserved: a.Reserved, ResetAt: a.ResetAt, ResetAfter: a.ResetAfter, RetryAfter: a.RetryAfter, Delay: v.Delay}, true)
	if s := v.Speaker(); s != nil && s.Asked {
		tellDisplay(f, s)
	}
	if v.Hold != (weir.HoldID{}) {
		f.Text("hold", v.Hold.String())
		f.Time("hold_expires_at", v.HoldExpires.Time())
	}
	tellTrue(f, "unheld", v.Unheld)
	if v.Priority != rule.Normal {
		f.Text("priority", v.Priority.String())
	}
	f.Bool("degraded", v.Degraded != nil)
	f.Int("version", v.Version)
	if results {
		f.List("results", len(v.Results))
		for i := range v.Results {
			TellResult(f, &v.Results[i])
		}
		f.End(true)
	}
	f.End(false)
}

// TellResult tells what one limit says.
func TellResult(f Fields, r *engine.Result) {
	f.Object("")
	f.Text("rule", r.Rule.ID)
	tellText(f, "level", r.Level())
	f.Text("key", r.Key)
	f.Text("algorithm", r.Compiled.Algorithm().String())
	f.Text("policy", r.Compiled.Policy())
	f.Bool("allowed", r.Allowed)
	tellTrue(f, "shadow", r.Shadow)
	tellTrue(f, "soft", r.Soft)
	f.Bool("asked", r.Asked)
	tellTrue(f, "local", r.Local)
	f.Int("cost", r.Cost)
	tellInt(f, "excess", r.Excess)
	tellInt(f, "leave", r.Leave)
	tellNumbers(f, &r.Decision, r.Asked)
	tellDisplay(f, r)
	tellTrue(f, "penalty", r.Penalty)
	tellInt(f, "warning", int64(r.Warning()))
	if o := r.Override; o != nil {
		f.Object("override")
		f.Text("id", o.ID)
		f.Time("ends_at", o.Ends)
		f.End(false)
	}
	f.End(false)
}

// tellDisplay tells the numbers of a rule that counts money as people read them. What a limit has not been asked is not known.
func tellDisplay(f Fields, r *engine.Result) {
	policy, _ := r.Rule.DisplayLimit(r.Compiled)
	if policy == "" {
		return
	}
	f.Object("display")
	f.Text("policy", policy)
	f.Text("cost", r.Rule.Display(r.Compiled, r.Cost))
	if r.Asked {
		f.Text("limit", r.Rule.Display(r.Compiled, r.Limit))
		f.Text("remaining", r.Rule.Display(r.Compiled, r.Remaining))
		if r.Reserved != 0 {
			f.Text("reserved", r.Rule.Display(r.Compiled, r.Reserved))
		}
	}
	f.End(false)
}

// TellSettled tells what has become of a hold. Nothing is known of the parts of one that is pending.
func TellSettled(f Fields, s *engine.Settled) {
	f.Object("")
	f.Text("state", s.State.String()) // open, settled or pending
	if s.State == weir.HoldOpen {
		f.Time("expires_at", s.Expires.Time())
	}
	f.List("parts", len(s.Parts))
	for _, p := range s.Parts {
		f.Object("")
		f.Text("rule", p.Rule)
		tellText(f, "unit", p.Unit)
		tellTrue(f, "shadow", p.Shadow)
		f.Int("reserved", p.Reserved)
		f.Int("used", p.Used)
		tellInt(f, "excess", p.Excess)
		f.End(false)
	}
	f.End(true)
	f.End(false)
}

// tellNumbers tells the eight that an answer and each of its results have in common. Times are in
// milliseconds, rounded up; null is that waiting does not help.
func tellNumbers(f Fields, d *weir.Decision, asked bool) {
	f.Int("limit", d.Limit)
	f.Int("remaining", d.Remaining)
	tellInt(f, "reserved", d.Reserved)
	tellInt(f, "leased", d.Leased)
	resetAt := int64(0)
	if asked {
		resetAt = front.UnixSeconds(d.ResetAt)
	}
	f.Int("reset_at", resetAt)
	f.Int("reset_after_ms", notation.CeilDuration(d.ResetAfter, time.Millisecond))
	if d.RetryAfter == weir.Never {
		f.Null("retry_after_ms")
	} else {
		f.Int("retry_after_ms", notation.CeilDuration(d.RetryAfter, time.Millisecond))
	}
	f.Int("delay_ms", notation.CeilDuration(d.Delay, time.Millisecond))
}

// tellText, tellTrue and tellInt leave out what is usual.
func tellText(f Fields, name, text string) {
	if text != "" {
		f.Text(name, text)
	}
}

func tellTrue(f Fields, name string, yes bool) {
	if yes {
		f.Bool(name, true)
	}
}

func tellInt(f Fields, name string, n int64) {
	if n != 0 {
		f.Int(name, n)
	}
}
