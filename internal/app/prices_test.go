package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/gateway"
)

// A price list is followed: what models cost is in force, and a list that cannot be used changes nothing and is told.
func TestPricesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	write := func(text string) { // in one step
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05}}`)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`))
	}))
	t.Cleanup(upstream.Close)
	route, err := gateway.ParseRoute(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	o, log := prepared(t, Options{Prices: Prices{File: path}, Gateway: &Gateway{Listen: "127.0.0.1:0", Options: gateway.Options{Routes: []gateway.Route{route}}}},
		"rules: [{id: spend, key: global, limit: 20usd/year, tokens: {price: usd}}]")
	a := started(t, o)
	say := func(model string) (int, string) {
		t.Helper()
		return ask(t, nil, "POST", "http://"+a.Addrs().Gateway.String()+"/v1/chat/completions", `{"model":"`+model+`","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`)
	}
	used := func() string {
		t.Helper()
		_, body := ask(t, nil, "GET", "http://"+a.Addrs().HTTP.String()+"/v1/keys?rule=spend&key=global", "")
		return body
	}
	if status, body := say("gpt-4o-2024-08-06"); status != 200 {
		t.Fatal(status, body)
	}
	waitFor(t, "3500 millionths", func() bool { return strings.Contains(used(), `"remaining":19996500`) })
	if status, body := say("gpt-9"); status != 400 || !strings.Contains(body, `The model \"gpt-9\" has no price`) {
		t.Error(status, body)
	}
	write(`{"gpt-9": {"input_cost_per_token": -1}}`)
	waitFor(t, "the file", func() bool { return a.prices.trouble() != nil })
	if status, _ := say("gpt-4o"); status != 200 || !strings.Contains(log.String(), "is negative") {
		t.Errorf("with a bad file: %d, %s", status, log)
	}
	write(`{"gpt-9": {"input_cost_per_token": 1e-06}}`)
	waitFor(t, "the file", func() bool { return a.prices.trouble() == nil })
	if status, body := say("gpt-9"); status != 200 {
		t.Error(status, body)
	}
	waitFor(t, "1100 more", func() bool { return strings.Contains(used(), `"remaining":19991900`) })
}
