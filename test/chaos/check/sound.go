package check

import "fmt"

// soundLocked judges what an answer says of itself.
func (c *Checker) soundLocked(a *Answer) {
	under := c.rules.Under(a.Path)
	if len(under) == 0 {
		return
	}
	has := func(policy string) bool {
		for _, r := range under {
			if r.OnFailure == policy {
				return true
			}
		}
		return false
	}
	promise, what := Sound, ""
	switch {
	case a.Degraded && has("closed") && a.Allowed:
		promise, what = Policy, "it was allowed without the store, and a rule says closed"
	case a.Degraded && !has("closed") && !has("local") && !a.Allowed:
		promise, what = Policy, "it was denied without the store, and every rule says open"
	case a.Degraded && !a.Allowed && has("closed") && a.Reason != "failure":
		what = fmt.Sprintf("it was denied without the store, and the reason is %q", a.Reason)
	case !a.Degraded && a.Reason != "limits":
		what = fmt.Sprintf("the store was asked, and the reason is %q", a.Reason)
	case !a.Degraded && !a.Asked:
		what = "it is not degraded, and a limit was not asked"
	case !a.Degraded && !a.Allowed && !a.Waits:
		what = "it was denied, and not told when to come back"
	case !a.Degraded && !a.Allowed && under[0].Wide:
		what = "it was denied under a limit that nobody reaches"
	default:
		return
	}
	c.blameLocked(Violation{Promise: promise, Span: a.Span, Rule: under[0].ID, What: fmt.Sprintf("instance %d, %s: %s", a.Instance, a.Path, what)})
}
