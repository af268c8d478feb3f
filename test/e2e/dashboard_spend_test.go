package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The page of a rule that counts dollars shows what requests have cost, by client, by model and by day, and the rest of the page is
// in dollars, too: warnings, how full the limit gets, and holds. That of another rule says nothing of dollars.
func TestDashboardSpend(t *testing.T) {
	p, b, _ := dashboard(t, `rules:
  - {id: spend, match: {path: /v1}, key: user, limit: 20usd/day, warn: [80%]}
  - {id: calls, match: {path: /v1}, key: user, limit: 1000/day}
`)
	c := client(t)
	for _, one := range []struct {
		user, model string
		micros      int
	}{{"ann", "gpt-4o", 16_500_000}, {"ann", "claude", 1_250_000}, {"bob", "gpt-4o", 12_500}} {
		body := fmt.Sprintf(`{"user": %q, "path": "/v1", "attributes": {"model": %q}, "cost": {"usd": %d}}`, one.user, one.model, one.micros)
		if a := ask(t, c, "POST", p.URL+"/v1/check", body); a.Status != 200 {
			t.Fatal(a.Text)
		}
	}
	page := b.open(p.URL, "#/rules/view/spend")
	card := id("rule-spend")
	page.see(card+" tbody tr:nth-child(1)", "user:ann")
	page.see(card+" tbody tr:nth-child(1)", "$17.75")
	page.see(card+" tbody tr:nth-child(2)", "$0.0125")
	page.press(card + " button:nth-of-type(2)") // by model
	page.see(card+" tbody tr:nth-child(1)", "gpt-4o")
	page.see(card+" tbody tr:nth-child(1)", "$16.5125")
	page.see(card+" tbody tr:nth-child(2)", "$1.25")
	page.press(card + " button:nth-of-type(3)") // by day
	page.see(card+" tbody tr:nth-child(1)", "$17.7625")
	if n := page.count(card + " tbody tr"); n != 1 {
		t.Errorf("%d days", n)
	}
	var href string
	page.run("the link", chromedp.Evaluate(`document.querySelector('[data-testid="rule-spend"] a[download]').href`, &href))
	const line = ",user:ann,gpt-4o,"
	if csv := ask(t, c, "GET", href, ""); csv.Status != 200 || !strings.Contains(csv.Text, line) || !strings.Contains(csv.Text, ",16.50,") {
		t.Errorf("the table is %s", csv.Text)
	}
	page.see(id("warnings"), "$16.50 of $20.00")
	page.see(id("warnings"), "user:ann")
	page.see(id("rule-full")+" dl", "$20.00")

	other := b.open(p.URL, "#/rules/view/calls")
	other.see(id("rule-full")+" dl", "1,000")
	if n := other.count(card); n != 0 {
		t.Error("a rule that counts requests has a table of dollars")
	}
}

// The page of a rule that counts tokens shows what is reserved for answers that are open, and what was used, by model.
func TestDashboardReserved(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "slow") {
			asked <- struct{}{}
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":40,"total_tokens":50}}`)
	}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	write(t, dir, "prices.json", `{"fast": {"input_cost_per_token": 1e-3, "output_cost_per_token": 0.1}, "slow": {"input_cost_per_token": 1e-3, "output_cost_per_token": 0.1}}`)
	write(t, dir, "rules.yaml", "rules: [{id: spend, key: ip, limit: 200usd/day, tokens: {price: usd}}]")
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", upstream.URL, "--prices", "prices.json")
	c := client(t)
	chat := func(model string) {
		body := fmt.Sprintf(`{"model": %q, "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}`, model)
		if a, err := try(c, "POST", p.Gateway+"/v1/chat/completions", body); err != nil || a.Status != 200 {
			t.Error(err, a.Text)
		}
	}
	chat("fast")
	done := make(chan struct{})
	go func() {
		defer close(done)
		chat("slow")
	}()
	<-asked
	page := openBrowser(t).open(p.URL, "#/rules/view/spend")
	page.front()
	row := id("rule-reserved") + " tbody tr"
	page.see(row+":nth-child(1)", "fast")
	page.see(row+":nth-child(1)", "$4.01") // 10 × 0.001 + 40 × 0.1; the rest of about 10 dollars is refunded
	page.see(row+":nth-child(1)", "$5.99")
	page.see(row+":nth-child(2)", "slow")
	page.see(row+":nth-child(2)", "$10.00")
	close(release)
	<-done
	page.see(row+":nth-child(2)", "$4.01")
	if n := page.count(row); n != 2 {
		t.Errorf("%d models", n)
	}
}
