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
	// Nothing counts another currency than the list, and the list keeps its own.
	rules := "http://" + a.Addrs().HTTP.String() + "/v1/rules"
	euros := `{"id":"euros","key":"global","limit":"20eur/day","tokens":{"price":"eur"}}`
	if status, body := ask(t, nil, "POST", rules, euros); status != 422 && status != 400 || !strings.Contains(body, "counts EUR, and the price list is in dollars") || !strings.Contains(body, "E042") {
		t.Error(status, body)
	}
	if status, body := ask(t, nil, "POST", rules, strings.Replace(euros, `"tokens":{"price":"eur"}`, `"cost":5`, 1)); status != 201 {
		t.Error(status, body)
	}
	write(`{"currency": "eur", "gpt-9": {"input_cost_per_token": 1e-06}}`)
	waitFor(t, "the file", func() bool { return a.prices.trouble() != nil })
	if !strings.Contains(log.String(), "it is in EUR, and the list before in dollars") {
		t.Error(log)
	}
	waitFor(t, "1100 more", func() bool { return strings.Contains(used(), `"remaining":19991900`) })
}

// Stored rules in another currency than the list keep weir from starting, with the remedy.
func TestPricesCurrency(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(`{"currency": "eur", "m": {"input_cost_per_token": 1e-06}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := prepared(t, Options{Prices: Prices{File: path}}, "rules: [{id: spend, key: global, limit: 20usd/year, tokens: {price: usd}}]")
	a, err := New(o)
	if err == nil {
		err = a.Start(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "spend: tokens: price: the rule counts dollars, and the price list is in EUR; write eur, or start weir with a list in dollars") {
		t.Error(err)
	}
}
