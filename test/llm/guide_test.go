package llm

import (
	"context"
	"fmt"
	"io"
	"os"
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
