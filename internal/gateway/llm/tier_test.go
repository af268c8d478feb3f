package llm

import (
	"testing"

	"github.com/weirhq/weir/rule"
)

// The response says in which tier it was served. If it does not, a request for a faster one is taken to have got it.
func TestServiceTier(t *testing.T) {
	const body = `{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "service_tier": "`
	for _, c := range []struct {
		asked, said string
		want        rule.ServiceTier
	}{
		{"priority", "", rule.PriorityTier},
		{"priority", `, "service_tier": "default"`, rule.StandardTier},
		{"flex", "", rule.StandardTier},
		{"flex", `, "service_tier": "flex"`, rule.FlexTier},
		{"auto", `, "service_tier": "priority"`, rule.PriorityTier},
		{"flex", `, "service_tier": null`, rule.StandardTier},
	} {
		r, ok := Parse("/v1/chat/completions", []byte(body+c.asked+`"}`), rule.AutoAPI)
		if want := rule.ParseServiceTier(c.asked); !ok || r.Tier != want || r.Wrong != "" {
			t.Errorf("%s: tier %d, %s", c.asked, r.Tier, r.Wrong)
		}
		w := NewWatch(r)
		watched(w, header("x.json"), 200, `{"usage": {"prompt_tokens": 1, "completion_tokens": 1}`+c.said+`}`, 100)
		if u, _ := w.Used(); u.Tier != c.want || u.Input != 1 {
			t.Errorf("%s%s: %+v", c.asked, c.said, u)
		}
		w.Free()
	}
	if r, _ := Parse("/v1/chat/completions", []byte(body+`flex", "service_tier": "priority"}`), rule.AutoAPI); r.Wrong == "" {
		t.Error("two tiers were accepted")
	}
}
