package httplimit

import (
	"maps"
	"net/http"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway/llm"
	"github.com/weirhq/weir/rule"
)

// The attributes of a message of MCP. They come from the body alone.
const (
	attributeMethod = "mcp.method"
	attributeTool   = "mcp.tool"
)

// forgetMessages removes attributes that others have for messages.
func (p *pass) forgetMessages() {
	_, method := p.request.Attributes[attributeMethod]
	if _, tool := p.request.Attributes[attributeTool]; method || tool {
		own := p.ownAttributes()
		delete(own, attributeMethod)
		delete(own, attributeTool)
	}
}

// ownAttributes are those of the request, in memory of the pass.
func (p *pass) ownAttributes() map[string]string {
	if p.attributes == nil {
		p.attributes = map[string]string{}
	}
	maps.Copy(p.attributes, p.request.Attributes)
	p.request.Attributes = p.attributes
	return p.attributes
}

// readMessages tells rules about the messages in the body of a request. The error is a sentence for the client.
func (p *prompt) readMessages(pass *pass, r *http.Request) string {
	p.messages = llm.ParseMessages(p.body, r.Header)
	q, list := &pass.request, p.messages.List
	switch {
	case p.messages.Wrong != "":
	case len(list) == 1:
		describe(pass.ownAttributes(), &list[0])
	default:
		for i := range list {
			attributes := maps.Clone(q.Attributes)
			if attributes == nil {
				attributes = map[string]string{}
			}
			describe(attributes, &list[i])
			q.Batch = append(q.Batch, attributes)
		}
	}
	return p.messages.Wrong
}

// describe adds what is known of a message.
func describe(attributes map[string]string, one *llm.Message) {
	if one.Method != "" {
		attributes[attributeMethod] = one.Method
	}
	if one.Tool != "" {
		attributes[attributeTool] = one.Tool
	}
}

// answerMessages answers messages that may not go on. Clients of the protocol take status 429 for a failure of the
// transport, and some lose the text that a model is to read; where an answer is wanted, it has status 200.
func (p *prompt) answerMessages(w http.ResponseWriter, d *Denial) {
	t := &llm.Trouble{Status: d.Status, Limit: d.Cause == engine.QuotaExceeded, Detail: d.Detail, Rule: d.Rule, Code: d.Code, Wait: d.Wait()}
	if speaker := d.Verdict.Speaker(); t.Limit && (speaker == nil || speaker.Rule.Deny.Message == "") {
		t.Detail = ""
	}
	status := d.Status
	if status == http.StatusTooManyRequests && p.messages.Answerable() {
		status = http.StatusOK
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(p.messages.Answer(t))
}

// denies reports whether one of some rules, which may be nil, can deny a request.
func denies(rules ...*rule.Entry) bool {
	for _, r := range rules {
		if r != nil && r.Mode.Denies() {
			return true
		}
	}
	return false
}
