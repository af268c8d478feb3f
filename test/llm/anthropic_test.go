package llm

import (
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func (b *bench) anthropic() *anthropic.Client {
	c := anthropic.NewClient(option.WithBaseURL(b.URL), option.WithAPIKey("k"), option.WithMaxRetries(0))
	return &c
}

func question(model anthropic.Model) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: model, MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))}}
}

func TestAnthropic(t *testing.T) {
	b := newBench(t, usual)
	message, err := b.anthropic().Messages.New(t.Context(), question("claude-sonnet-4-5"))
	if err != nil || message.Content[0].Text != "Hi! My name is Claude." {
		t.Fatalf("%+v, %v", message, err)
	}
	if got := b.used(); got != 2095+1024+300+503 {
		t.Errorf("%d are used", got)
	}
}

// read accumulates a stream.
func read(t *testing.T, b *bench, params anthropic.MessageNewParams) (anthropic.Message, error) {
	t.Helper()
	var message anthropic.Message
	stream := b.anthropic().Messages.NewStreaming(t.Context(), params)
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Error(err)
		}
	}
	return message, stream.Err()
}

func TestAnthropicStream(t *testing.T) {
	b := newBench(t, usual)
	message, err := read(t, b, question("claude-sonnet-4-5"))
	if err != nil || message.Content[0].Text != "Hello, and welcome!" || message.StopReason != "end_turn" {
		t.Errorf("%+v, %v", message, err)
	}
	if got := b.used(); got != 25+100+7+15 {
		t.Errorf("%d are used", got)
	}
	tools := question("claude-sonnet-4-5")
	tools.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather"}}}
	if message, err = read(t, b, tools); err != nil || message.Content[1].Name != "get_weather" || string(message.Content[1].Input) != `{"location": "San Francisco, CA"}` {
		t.Errorf("%+v, %v", message, err)
	}
	if got := b.used(); got != 147+472+89 {
		t.Errorf("%d are used", got)
	}
}

func TestAnthropicTrouble(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 300/1d, tokens: {}}]`)
	var problem *anthropic.Error
	if _, err := b.anthropic().Messages.New(t.Context(), question("broken")); !errors.As(err, &problem) || problem.StatusCode != 400 {
		t.Errorf("%v", err)
	}
	if got := b.used(); got != 0 {
		t.Errorf("after an error, %d are used", got)
	}
	if _, err := read(t, b, question("torn")); err == nil {
		t.Error("a stream that broke off seems whole")
	}
	if got := b.used(); got != 132+1 {
		t.Errorf("after a stream that broke off, %d are used", got)
	}
	many := question("claude-sonnet-4-5")
	many.MaxTokens = 200
	if _, err := b.anthropic().Messages.New(t.Context(), many); !errors.As(err, &problem) || problem.StatusCode != 429 || problem.Response.Header.Get("anthropic-ratelimit-tokens-remaining") != "167" {
		t.Errorf("%v", err)
	}
}

func TestAnthropicCut(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 300/1d, tokens: {on_overrun: cut}}]`)
	few := question("claude-sonnet-4-5")
	few.MaxTokens = 125 // with the prompt, it is 134: 2 more than the vendor says at the start
	message, err := read(t, b, few)
	if err != nil || message.StopReason != anthropic.StopReasonMaxTokens || message.Content[0].Text != "Hello, and" {
		t.Errorf("%+v, %v", message, err)
	}
	if got := b.used(); got != 132+3 {
		t.Errorf("%d are used", got)
	}
}
