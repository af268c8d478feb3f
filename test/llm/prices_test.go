package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/weirhq/weir/engine"
)

// priceList has the same prices for the models of which the upstream does something of its own.
const priceList = `{
	"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-06},
	"torn": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05},
	"slow": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05},
	"batch": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05},
	"anthropic.claude-sonnet-4-5": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06},
	"broken": {"input_cost_per_token": 2.5e-06},
	"claude-sonnet-4-5": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06},
	"gemini-2.5-flash": {"input_cost_per_token": 3e-07, "output_cost_per_token": 2.5e-06, "cache_read_input_token_cost": 3e-08}
}`

const dollars = `rules: [{id: tokens, key: ip, limit: 20usd/day, tokens: {price: usd, default_output: 100}}]`

// batches are answers with two calls of tools.
var batches = map[string]string{
	"openai": `{"id":"chatcmpl-2","object":"chat.completion","created":1,"model":"batch","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},{"id":"call_2","type":"function","function":{"name":"time","arguments":"{}"}}]}}],` +
		`"usage":{"prompt_tokens":121,"completion_tokens":43,"total_tokens":164}}`,
	"anthropic": `{"id":"msg_2","type":"message","role":"assistant","model":"batch","stop_reason":"tool_use","stop_sequence":null,"content":[` +
		`{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Paris"}},{"type":"tool_use","id":"toolu_2","name":"time","input":{}}],"usage":{"input_tokens":121,"output_tokens":43}}`,
	"gemini": `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"weather","args":{"city":"Paris"}}},{"functionCall":{"name":"time","args":{}}}]}}],` +
		`"modelVersion":"batch","responseId":"r2","usageMetadata":{"promptTokenCount":121,"candidatesTokenCount":43,"totalTokenCount":164}}`,
}

// costs tells whether the last request has cost so many millionths of a dollar.
func (b *bench) costs(t *testing.T, what string, before *int64, want int64) {
	t.Helper()
	used := b.used()
	if got := used - *before; got != want {
		t.Errorf("%s costs %d millionths of a dollar, want %d", what, got, want)
	}
	*before = used
}

// What the official clients in Go ask for costs exactly what the vendor's prices say, whole, in streams, with tools and caches, and if a
// stream breaks off.
func TestPrices(t *testing.T) {
	b := newBench(t, dollars)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var spent int64
	_, err := b.openai().Chat.Completions.New(t.Context(), hello("gpt-4o-2024-08-06"))
	must(err)
	b.costs(t, "an answer of OpenAI", &spent, 1973) // 93 × 2.5 + 1024 cached × 1.25 + 46 × 10
	_, err = b.openai().Responses.New(t.Context(), responses.ResponseNewParams{Model: "gpt-4o"})
	must(err)
	b.costs(t, "a response of OpenAI", &spent, 4255) // 228 × 2.5 + 100 × 1.25 + 356 × 10
	chunks := b.openai().Chat.Completions.NewStreaming(t.Context(), hello("gpt-4o"))
	for chunks.Next() {
	}
	must(chunks.Err())
	b.costs(t, "a stream of OpenAI", &spent, 144) // 16 × 2.5 + 3 × 1.25 + 10 × 10
	chunks = b.openai().Chat.Completions.NewStreaming(t.Context(), hello("torn"))
	for chunks.Next() {
	}
	if chunks.Err() == nil {
		t.Error("a stream that broke off seems whole")
	}
	b.costs(t, "a broken stream of OpenAI", &spent, 53) // 5 × 2.5 + 4 × 10: the prompt, and 16 bytes

	_, err = b.anthropic().Messages.New(t.Context(), question("claude-sonnet-4-5-20250929"))
	must(err)
	b.costs(t, "an answer of Anthropic", &spent, 15263) // 2095 × 3 + 1024 × 0.3 + 300 written × 3.75 + 503 × 15
	_, err = read(t, b, question("claude-sonnet-4-5"))
	must(err)
	b.costs(t, "a stream of Anthropic", &spent, 357) // 25 × 3 + 100 × 0.3 + 7 × 3.75 + 15 × 15

	_, err = b.gemini().Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text("Hello"), nil)
	must(err)
	b.costs(t, "an answer of Gemini", &spent, 203) // 8 × 0.3 + 2 × 0.03 + 80 × 2.5
	_, _, err = stream(b, "gemini-2.5-flash", nil)
	must(err)
	b.costs(t, "a stream of Gemini", &spent, 93) // 8 × 0.3 + 36 × 2.5
}

// The official clients in Go call several tools at once and send their results, name a cache, and leave streams or see them break off.
func TestPricesOfAgents(t *testing.T) {
	b := newBench(t, dollars)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var spent int64
	chat, err := b.openai().Chat.Completions.New(t.Context(), hello("batch"))
	must(err)
	if calls := chat.Choices[0].Message.ToolCalls; len(calls) != 2 || calls[1].Function.Name != "time" {
		t.Errorf("%+v", calls)
	}
	b.costs(t, "a batch of calls of OpenAI", &spent, 733) // 121 × 2.5 + 43 × 10
	message, err := b.anthropic().Messages.New(t.Context(), question("batch"))
	must(err)
	if len(message.Content) != 2 || message.Content[1].Name != "time" {
		t.Errorf("%+v", message.Content)
	}
	b.costs(t, "a batch of calls of Anthropic", &spent, 733)
	parts := b.anthropic().Messages.NewStreaming(t.Context(), question("slow"))
	parts.Next()
	b.next <- struct{}{}
	parts.Next()
	parts.Close()
	b.costs(t, "a stream of Anthropic that the client leaves", &spent, 340) // 132 × 2.5 + 1 × 10: what its first event says

	tools := []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "weather"}, {Name: "time"}}}}
	done, err := b.gemini().Models.GenerateContent(t.Context(), "batch", genai.Text("Hello"), &genai.GenerateContentConfig{Tools: tools})
	must(err)
	if calls := done.FunctionCalls(); len(calls) != 2 || calls[1].Name != "time" {
		t.Errorf("%+v", calls)
	}
	b.costs(t, "a batch of calls of Gemini", &spent, 733)
	results := append(genai.Text("Hello"), done.Candidates[0].Content, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		genai.NewPartFromFunctionResponse("weather", map[string]any{"sky": "blue"}), genai.NewPartFromFunctionResponse("time", map[string]any{"hour": 12}),
	}})
	done, err = b.gemini().Models.GenerateContent(t.Context(), "gemini-2.5-flash", results, &genai.GenerateContentConfig{Tools: tools, CachedContent: "cachedContents/plan"})
	must(err)
	if u := done.UsageMetadata; u.CachedContentTokenCount != 2 || u.ToolUsePromptTokenCount != 6 {
		t.Errorf("%+v", u)
	}
	b.costs(t, "the results of a batch, with a cache of Gemini", &spent, 203) // 8 × 0.3 + 2 × 0.03 + 80 × 2.5
	if text, _, err := stream(b, "torn", nil); err == nil || text != "Explaining this." {
		t.Errorf("a stream that broke off: %q, %v", text, err)
	}
	b.costs(t, "a broken stream of Gemini", &spent, 70) // 8 × 2.5 + 5 × 10: what its event says
	for chunk, err := range b.gemini().Models.GenerateContentStream(t.Context(), "slow", genai.Text("Hello"), nil) {
		must(err)
		if chunk.Text() != "Explaining this." {
			t.Errorf("%q", chunk.Text())
		}
		break // which ends the request
	}
	b.costs(t, "a stream of Gemini that the client leaves", &spent, 70)
}

// The same with the official clients for JavaScript, which also call several tools at once.
func TestNodePrices(t *testing.T) {
	b := newBench(t, dollars)
	n := b.node()
	message := func(model string, fields ...any) object { return greeting(model, append(fields, "max_tokens", 100)...) }
	var spent int64

	n.get("chat", greeting("gpt-4o"))
	b.costs(t, "an answer of OpenAI", &spent, 1973)
	n.get("chat", greeting("gpt-4o", "tools", []object{{"type": "function", "function": object{"name": "get_current_weather"}}}))
	b.costs(t, "a call of a tool", &spent, 375) // 82 × 2.5 + 17 × 10
	calls := n.get("chat", greeting("batch")).Done.Choices[0].Message.ToolCalls
	if len(calls) != 2 || calls[1].Function.Name != "time" {
		t.Errorf("%+v", calls)
	}
	b.costs(t, "a batch of calls of OpenAI", &spent, 733) // 121 × 2.5 + 43 × 10
	n.get("chat", object{"model": "gpt-4o", "messages": []object{
		{"role": "assistant", "tool_calls": []object{{"id": "call_1", "type": "function", "function": object{"name": "weather", "arguments": "{}"}}, {"id": "call_2", "type": "function", "function": object{"name": "time", "arguments": "{}"}}}},
		{"role": "tool", "tool_call_id": "call_1", "content": "sunny"}, {"role": "tool", "tool_call_id": "call_2", "content": "noon"},
	}})
	b.costs(t, "the results of a batch", &spent, 1973)

	done := n.get("messages", message("claude-sonnet-4-5")).Done
	if len(done.Content) != 1 || done.Content[0].Text != "Hi! My name is Claude." {
		t.Errorf("%+v", done)
	}
	b.costs(t, "an answer of Anthropic", &spent, 15263)
	done = n.get("messages", message("batch")).Done
	if len(done.Content) != 2 || done.Content[1].Name != "time" {
		t.Errorf("%+v", done)
	}
	b.costs(t, "a batch of calls of Anthropic", &spent, 733)

	for _, c := range []struct {
		what, api, model string
		tools            bool
		cost             int64
	}{
		{"a stream of OpenAI", "chat", "gpt-4o", false, 144},
		{"a broken stream of OpenAI", "chat", "torn", false, 53},
		{"a stream of Anthropic", "messages", "claude-sonnet-4-5", false, 357},
		{"a stream of Anthropic with a tool", "messages", "claude-sonnet-4-5", true, 2751}, // 472 × 3 + 89 × 15
		{"a broken stream of Anthropic", "messages", "torn", false, 340},                   // 132 × 2.5 + 1 × 10: what its first event says
	} {
		params := message(c.model, "stream", true)
		if c.tools {
			params["tools"] = []object{{"name": "get_weather", "input_schema": object{"type": "object"}}}
		}
		n.request(c.api, 0, params)
		line := n.next()
		for ; line.Event != nil; line = n.next() {
		}
		if broken := c.model == "torn"; broken != (line.Error != nil) {
			t.Errorf("%s: %+v", c.what, line.Error)
		}
		b.costs(t, c.what, &spent, c.cost)
	}

	n.leave("chat", message("slow", "stream", true))
	b.costs(t, "a stream of OpenAI that the client leaves", &spent, 33) // 5 × 2.5 + 2 × 10: the prompt, and 5 bytes
	n.leave("messages", message("slow", "stream", true))
	b.costs(t, "a stream of Anthropic that the client leaves", &spent, 340) // 132 × 2.5 + 1 × 10: what its first event says

	n.request("messages", 0, message("broken"))
	if e := n.next().Error; e == nil || e.Status != 400 {
		t.Errorf("%+v", e)
	}
	b.costs(t, "an error of Anthropic", &spent, 0)
	n.request("messages", 0, message("gpt-9"))
	if e := n.next().Error; e == nil || e.Status != 400 || !strings.Contains(e.Message, "gpt-9") || !strings.Contains(e.Message, "has no price") {
		t.Errorf("%+v", e)
	}
}

// A stream of Bedrock passes as it is, and costs what its last frame says, at the price of the model in the path without its region. A
// denial is an error that clients of Amazon know.
func TestBedrockPrices(t *testing.T) {
	frames := recorded("converse.frames")
	b := &bench{t: t, events: make(chan engine.HoldKind, 10)}
	b.start(`rules: [{id: tokens, key: ip, limit: 0.01usd/day, tokens: {price: usd}}]`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		io.WriteString(w, frames)
	}))
	ask := func(most string) (*http.Response, string) {
		resp, err := http.Post(b.URL+"/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream", "application/json",
			strings.NewReader(`{"messages":[{"role":"user","content":[{"text":"Hello"}]}],"inferenceConfig":{"maxTokens":`+most+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	if resp, body := ask("300"); resp.StatusCode != 200 || body != frames {
		t.Errorf("%s: %q", resp.Status, body)
	}
	var spent int64
	b.costs(t, "a stream of Bedrock", &spent, 2190) // 25 × 3 + 2000 × 0.3 + 60 × 3.75 + 40 of an hour × 6 + 70 × 15
	if resp, body := ask("2000"); resp.StatusCode != 429 || resp.Header.Get("X-Amzn-Errortype") != "ThrottlingException" || !strings.HasPrefix(body, `{"message":"`) {
		t.Errorf("%s %v: %s", resp.Status, resp.Header, body)
	}
}

// A budget that is used up is told to both clients for JavaScript as their vendors tell limits.
func TestNodeUsedUp(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, limit: 0.0001usd/day, tokens: {price: usd}}]`)
	n := b.node()
	for api, model := range map[string]string{"chat": "gpt-4o", "messages": "claude-sonnet-4-5"} {
		n.request(api, 0, greeting(model, "max_tokens", 1000))
		if e := n.next().Error; e == nil || e.Class != "RateLimitError" || e.Status != 429 || !strings.Contains(e.Message, "$0.0001/day") {
			t.Errorf("%s: %+v", api, e)
		}
	}
}
