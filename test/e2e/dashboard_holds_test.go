package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The page of a rule that has holds compares what they reserve with what they use, and says
// what to do about the estimates. That of another rule says nothing of holds.
func TestDashboardHolds(t *testing.T) {
	p, b, _ := dashboard(t, `rules:
  - {id: chat, match: {path: /chat}, key: user, limit: 10000/1h}
  - {id: idle, match: {path: /idle}, key: user, limit: 100/1h}
`)
	c := client(t)
	settle := func(used int) {
		t.Helper()
		var held struct{ Hold string }
		if err := json.Unmarshal([]byte(ask(t, c, "POST", p.URL+"/v1/reserve", `{"user": "alice", "path": "/chat", "cost": 100}`).Text), &held); err != nil {
			t.Fatal(err)
		}
		if a := ask(t, c, "POST", p.URL+"/v1/settle", fmt.Sprintf(`{"hold": %q, "used": %d}`, held.Hold, used)); a.Status != 200 {
			t.Fatal(a.Text)
		}
	}
	for range 4 {
		settle(25)
	}
	ask(t, c, "POST", p.URL+"/v1/check", `{"user": "alice", "path": "/idle"}`)
	page := b.open(p.URL, "#/rules/view/chat")
	page.see(id("rule-holds"), "4 holds reserved, 4 settled (0 used more than reserved)")
	page.see(id("rule-holds"), "Estimates are 4 × what is used. Lower them: 99 % of the holds use at most 25")
	settle(900)
	page.see(id("rule-holds"), "Estimates are too low")

	other := b.open(p.URL, "#/rules/view/idle")
	waitFor(t, "the answer", func() bool {
		var answered bool
		return other.eval(`performance.getEntriesByType("resource").some((e) => e.name.includes("/v1/stats/holds"))`, &answered) == nil && answered
	})
	other.see(id("rule-facts"), "100/1h")
	if n := other.count(id("rule-holds")); n != 0 {
		t.Error("a rule without holds has a chart of them")
	}
}
