package llm

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

func TestProblem(t *testing.T) {
	const text = "Too many requests for the rule tokens; try again later."
	for _, c := range []struct {
		api     rule.ModelAPI
		problem Problem
		want    string
	}{
		{rule.OpenAI, Problem{Status: 429, Wait: time.Second}, `{"error":{"code":"rate_limit_exceeded","message":"` + text + `","param":null,"type":"tokens"}}`},
		{rule.OpenAI, Problem{Status: 429, Requests: true}, `{"error":{"code":"rate_limit_exceeded","message":"` + text + `","param":null,"type":"requests"}}`},
		{rule.OpenAI, Problem{Status: 401}, `{"error":{"code":"invalid_api_key","message":"` + text + `","param":null,"type":"invalid_request_error"}}`},
		{rule.Anthropic, Problem{Status: 401}, `{"error":{"message":"` + text + `","type":"authentication_error"},"type":"error"}`},
		{rule.Gemini, Problem{Status: 401}, `{"error":{"code":401,"message":"` + text + `","status":"UNAUTHENTICATED"}}`},
		{rule.Anthropic, Problem{Status: 429, Wait: time.Second}, `{"error":{"message":"` + text + `","type":"rate_limit_error"},"type":"error"}`},
		{rule.Gemini, Problem{Status: 429, Wait: 1500 * time.Millisecond}, `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}],"message":"` + text + `","status":"RESOURCE_EXHAUSTED"}}`},
		{rule.Gemini, Problem{Status: 429}, `{"error":{"code":429,"message":"` + text + `","status":"RESOURCE_EXHAUSTED"}}`},
		{rule.Bedrock, Problem{Status: 429}, `{"message":"` + text + `"}`},
		{rule.AutoAPI, Problem{Status: 413}, `{"error":{"code":"request_too_large","message":"` + text + `","param":null,"type":"invalid_request_error"}}`},
		{rule.Anthropic, Problem{Status: 403}, `{"error":{"message":"` + text + `","type":"permission_error"},"type":"error"}`},
	} {
		c.problem.Message = text
		if got := string(c.problem.JSON(c.api)); got != c.want+"\n" {
			t.Errorf("%v %d: got\n%swant\n%s", c.api, c.problem.Status, got, c.want)
		}
	}
}

func TestWriteHeaders(t *testing.T) {
	d := &weir.Decision{
		Limit: 150000, Remaining: 149984, ResetAfter: 6*time.Minute + 12*time.Millisecond + 1,
		ResetAt: weir.MicrosOf(time.Date(2026, 1, 2, 3, 10, 5, 600_000_000, time.FixedZone("", 3600))),
	}
	for _, c := range []struct {
		api    rule.ModelAPI
		tokens bool
		want   map[string]string
	}{
		{rule.OpenAI, true, map[string]string{"x-ratelimit-limit-tokens": "150000", "x-ratelimit-remaining-tokens": "149984", "x-ratelimit-reset-tokens": "6m0.013s"}},
		{rule.OpenAI, false, map[string]string{"x-ratelimit-limit-requests": "150000", "x-ratelimit-remaining-requests": "149984", "x-ratelimit-reset-requests": "6m0.013s"}},
		{rule.Anthropic, true, map[string]string{"anthropic-ratelimit-tokens-limit": "150000", "anthropic-ratelimit-tokens-remaining": "149984", "anthropic-ratelimit-tokens-reset": "2026-01-02T02:10:06Z"}},
		{rule.Gemini, true, nil},
	} {
		h := http.Header{}
		WriteHeaders(h, c.api, c.tokens, d)
		for name, want := range c.want {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if len(h) != len(c.want) {
			t.Errorf("%v: %v", c.api, h)
		}
	}
}
