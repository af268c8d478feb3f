package engine

import (
	"hash/crc32"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/estimate"
	"github.com/weirhq/weir/rule"
)

// capUsage counts no more than is plausible, and tells of it. What is not plausible teaches nothing. The bounds are the same
// under all rules.
func (h *Hold) capUsage(resp *rule.Response) {
	if resp.Tokens == nil || h.request.Prompt == nil {
		return
	}
	said := *resp.Tokens
	var parts []SettledPart
	for i := range h.Parts {
		c, reserved := h.Parts[i].Rule, h.Parts[i].counted
		if reserved == nil {
			continue
		}
		counted, capped := c.Plausible(h.request.Prompt, said)
		if !capped {
			return
		}
		*resp.Tokens, resp.Unfinished, resp.Cut = counted, true, false
		parts = append(parts, SettledPart{Rule: c.ID, Unit: c.CostUnit()})
		if h.engine.answers.warns(h.engine.clock(), reserved) {
			h.engine.logger.Warn("an upstream reports more usage than is plausible; less is charged", "rule", c.ID, "model", h.request.Prompt.Model,
				"input", said.Input, "output", said.Output, "calls", said.ToolCalls, "charged_input", counted.Input, "charged_output", counted.Output, "charged_calls", counted.ToolCalls)
		}
	}
	if len(parts) > 0 {
		h.engine.observeHold(CappedHold, parts)
	}
}

// learn takes note of how long an answer was, for a rule that reserves by that. One that another rule has cut tells nothing.
func (h *Hold) learn(p *HoldPart, resp *rule.Response) {
	c := p.Rule
	if resp.Cut && p.used <= p.Reserved {
		return
	}
	if tokens, known := c.Answer(h.request, resp); known {
		var buffer [128]byte
		client := h.engine.hashOf(h.request)
		if asker, known := c.AppendAsker(buffer[:0], h.request); known {
			client = crc32.ChecksumIEEE(asker)
		}
		from := estimate.Source{Owner: client, Client: client}
		if owner, ok := h.request.Owner(); ok { // all that the directory does not know have one
			from.Owner = crc32.ChecksumIEEE([]byte(owner))
		}
		h.engine.answers.learn(h.engine.clock(), answersOf{c.ID, h.request.Prompt.Model}, from, tokens)
	}
}

// warnAge is after how long a rule and a model are in the log again.
const warnAge = weir.Micros(time.Hour / time.Microsecond)

// warns reports whether to log that the usage of a model was not plausible: once in an hour for each that is counted apart.
func (a *answers) warns(now weir.Micros, r *reservations) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.warned > 0 && now-r.warned <= warnAge {
		return false
	}
	r.warned = now
	return true
}
