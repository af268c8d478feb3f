package llm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func (b *bench) openai() *openai.Client {
	c := openai.NewClient(option.WithBaseURL(b.URL+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
	return &c
}

func hello(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}}
}

func TestOpenAI(t *testing.T) {
	b := newBench(t, usual)
	c := b.openai()
	done, err := c.Chat.Completions.New(t.Context(), hello("gpt-4o"))
	if err != nil || !strings.HasPrefix(done.Choices[0].Message.Content, "Hello!") || done.Usage.TotalTokens != 1163 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := b.used(); got != 1163 {
		t.Errorf("%d are used", got)
	}
	tools := hello("gpt-4o")
	tools.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "get_current_weather"})}
	if done, err = c.Chat.Completions.New(t.Context(), tools); err != nil || done.Choices[0].Message.ToolCalls[0].Function.Name != "get_current_weather" {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := b.used(); got != 1163+99 {
		t.Errorf("%d are used", got)
	}
	vector, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "text-embedding-3-small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("Hello")}})
	if err != nil || len(vector.Data[0].Embedding) != 3 {
		t.Fatalf("%+v, %v", vector, err)
	}
	if got := b.used(); got != 1163+99+8 {
		t.Errorf("%d are used", got)
	}
	answer, err := c.Responses.New(t.Context(), responses.ResponseNewParams{Model: "gpt-5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}})
	if err != nil || !strings.Contains(answer.OutputText(), "unicorn") {
		t.Fatalf("%+v, %v", answer, err)
	}
	if got := b.used(); got != 1163+99+8+684 {
		t.Errorf("%d are used", got)
	}
}

// Every event arrives before the upstream sends the next one, whether or not the client asked
// for usage, and it gets the usage only if it did.
func TestOpenAIStream(t *testing.T) {
	for _, asks := range []bool{false, true} {
		b := newBench(t, usual)
		params := hello("slow")
		if asks {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		stream := b.openai().Chat.Completions.NewStreaming(t.Context(), params)
		text, events, usage := "", 0, int64(0)
		for stream.Next() {
			chunk := stream.Current()
			usage += chunk.Usage.TotalTokens
			events++
			if len(chunk.Choices) > 0 {
				text += chunk.Choices[0].Delta.Content
				b.next <- struct{}{}
			}
		}
		if err := stream.Err(); err != nil || text != "Hello there, you" {
			t.Errorf("%q, %v", text, err)
		}
		if asks && (usage != 29 || events != 5) || !asks && (usage != 0 || events != 4) {
			t.Errorf("asks: %v: %d events, a usage of %d", asks, events, usage)
		}
		close(b.next)
		if got := b.used(); got != 29 {
			t.Errorf("%d are used", got)
		}
	}
}

func TestOpenAIResponsesStream(t *testing.T) {
	b := newBench(t, usual)
	stream := b.openai().Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "gpt-5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}})
	last := ""
	for stream.Next() {
		last = stream.Current().Type
	}
	if err := stream.Err(); err != nil || last != "response.completed" {
		t.Errorf("%s, %v", last, err)
	}
	if got := b.used(); got != 48 {
		t.Errorf("%d are used", got)
	}
}

func TestOpenAITrouble(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 120/1d, tokens: {default_output: 100}}]`)
	c := b.openai()
	var problem *openai.Error
	if _, err := c.Chat.Completions.New(t.Context(), hello("broken")); !errors.As(err, &problem) || problem.StatusCode != 400 {
		t.Errorf("%v", err)
	}
	if got := b.used(); got != 0 {
		t.Errorf("after an error, %d are used", got)
	}
	stream := c.Chat.Completions.NewStreaming(t.Context(), hello("torn"))
	for stream.Next() {
	}
	if stream.Err() == nil {
		t.Error("a stream that broke off seems whole")
	}
	torn := b.used()
	if torn != 5+4 { // the prompt, and 16 bytes
		t.Errorf("after a stream that broke off, %d are used", torn)
	}
	ctx, leave := context.WithCancel(t.Context())
	stream = c.Chat.Completions.NewStreaming(ctx, hello("slow"))
	for range 2 {
		stream.Next()
		b.next <- struct{}{}
	}
	leave()
	stream.Close()
	left := b.used() - torn
	if left < 5+2 || left > 5+4 { // one or two events are on the way
		t.Errorf("a client that left has used %d", left)
	}
	many := hello("gpt-4o")
	many.MaxCompletionTokens = openai.Int(110)
	var res *http.Response
	_, err := c.Chat.Completions.New(t.Context(), many, option.WithResponseInto(&res))
	if !errors.As(err, &problem) || problem.StatusCode != 429 || problem.Code != "rate_limit_exceeded" || problem.Message == "" {
		t.Errorf("%v", err)
	}
	if res.Header.Get("x-ratelimit-limit-tokens") != "120" || res.Header.Get("x-ratelimit-reset-tokens") == "" {
		t.Errorf("%v", res.Header)
	}
}

// A stream that is cut looks to the client as if it had reached its own maximum.
func TestOpenAICut(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 120/1d, tokens: {on_overrun: cut}}]`)
	params := hello("gpt-4o")
	params.MaxTokens = openai.Int(1)
	stream := b.openai().Chat.Completions.NewStreaming(t.Context(), params)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || all.Choices[0].Message.Content != "Hello" || all.Choices[0].FinishReason != "length" {
		t.Errorf("%+v, %v", all.Choices, err)
	}
	if got := b.used(); got != 5+2 {
		t.Errorf("%d are used", got)
	}
}
