package llm

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/weirhq/weir/engine"
)

// chat is quoted in docs/guides/llm-tokens.md.
func chat(ctx context.Context, w io.Writer, gateway, apiKey string) error {
	client := openai.NewClient(option.WithBaseURL(gateway+"/v1"), option.WithAPIKey(apiKey))
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:               "gpt-4o",
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")},
		MaxCompletionTokens: openai.Int(500),
	})
	for stream.Next() {
		if chunk := stream.Current(); len(chunk.Choices) > 0 {
			fmt.Fprint(w, chunk.Choices[0].Delta.Content)
		}
	}
	return stream.Err()
}

// What the guide shows works, with the rules that it shows, and costs what it says.
func TestGuide(t *testing.T) {
	rules, err := os.ReadFile("../../examples/rules/llm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, string(rules))
	var text strings.Builder
	if err := chat(t.Context(), &text, b.URL, "sk-1"); err != nil || text.String() != "Hello there, you" {
		t.Errorf("%q, %v", text.String(), err)
	}
	if kind := <-b.events; kind != engine.SettledHold {
		t.Errorf("%v", kind)
	}
	// The vendor says 19 tokens of input, 3 of them cached, and 10 of output.
	for id, c := range map[string]struct {
		key  string
		want int64
	}{"model": {"attr:model:gpt-4o", 29}, "tokens": {"header:Authorization:Bearer sk-1", 29}, "money": {"header:Authorization:Bearer sk-1", 144}} { // 16 × 2.5 + 3 × 1.25 + 10 × 10
		if got := b.spent(id, c.key); got != c.want {
			t.Errorf("%s: %d are used, want %d", id, got, c.want)
		}
	}
}

// Clients of the other vendors send their API key, and have paths, as the guide says.
func TestGuideKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/llm-tokens.md")
	if err != nil {
		t.Fatal(err)
	}
	for api, c := range map[string]struct {
		call func(*bench) error
		key  string
	}{
		"OpenAI":    {func(b *bench) error { return chat(b.t.Context(), io.Discard, b.URL, "k") }, "Bearer k"},
		"Anthropic": {func(b *bench) error { _, err := read(b.t, b, question("claude-sonnet-4-5")); return err }, "k"},
		"Gemini":    {func(b *bench) error { _, _, err := stream(b, "gemini-2.5-flash", nil); return err }, "k"},
	} {
		row := regexp.MustCompile("\\| " + api + " \\| `(header:\\S+)` \\| `(/\\S+)` \\|").FindSubmatch(page)
		if row == nil {
			t.Fatalf("the guide has no key and path of %s", api)
		}
		b := newBench(t, fmt.Sprintf(`rules:
  - {id: all, key: global, limit: 10000/1d, algorithm: fixed_window, tokens: {}} # always has a hold
  - {id: tokens, match: {path: %s}, key: %s, limit: 10000/1d, algorithm: fixed_window, tokens: {}}`, row[2], row[1]))
		if err := c.call(b); err != nil {
			t.Fatal(api, err)
		}
		<-b.events
		if b.spent("tokens", string(row[1])+":"+c.key) == 0 {
			t.Errorf("nothing is used by the key of %s", api)
		}
	}
}
