package llm

import (
	"errors"
	"testing"

	"google.golang.org/genai"
)

func (b *bench) gemini() *genai.Client {
	b.t.Helper()
	c, err := genai.NewClient(b.t.Context(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: b.URL}})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func TestGemini(t *testing.T) {
	b := newBench(t, usual)
	done, err := b.gemini().Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text("Hello"), nil)
	if err != nil || done.Candidates[0].Content.Parts[0].Text != "Reading the plan" || done.FunctionCalls()[0].Name != "find" {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := b.used(); got != 4+6+50+30 {
		t.Errorf("%d are used", got)
	}
}

// stream reads a stream, and returns its text and how it ended.
func stream(b *bench, model string, config *genai.GenerateContentConfig) (text string, reason genai.FinishReason, err error) {
	for chunk, wrong := range b.gemini().Models.GenerateContentStream(b.t.Context(), model, genai.Text("Hello"), config) {
		if wrong != nil {
			return text, reason, wrong
		}
		text += chunk.Text()
		reason = chunk.Candidates[0].FinishReason
	}
	return text, reason, nil
}

func TestGeminiStream(t *testing.T) {
	b := newBench(t, usual)
	if text, reason, err := stream(b, "gemini-2.5-flash", nil); err != nil || text != "Explaining this. And some more words." || reason != genai.FinishReasonStop {
		t.Errorf("%q, %s, %v", text, reason, err)
	}
	if got := b.used(); got != 8+16+20 {
		t.Errorf("%d are used", got)
	}
}

func TestGeminiTrouble(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 120/1d, tokens: {default_output: 100}}]`)
	var problem genai.APIError
	if _, _, err := stream(b, "broken", nil); !errors.As(err, &problem) || problem.Code != 400 {
		t.Errorf("%v", err)
	}
	if got := b.used(); got != 0 {
		t.Errorf("after an error, %d are used", got)
	}
	if _, _, err := stream(b, "gemini-2.5-flash", &genai.GenerateContentConfig{MaxOutputTokens: 119}); !errors.As(err, &problem) || problem.Code != 429 || problem.Status != "RESOURCE_EXHAUSTED" {
		t.Errorf("%v", err)
	}
}

func TestGeminiCut(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 120/1d, tokens: {on_overrun: cut}}]`)
	text, reason, err := stream(b, "gemini-2.5-flash", &genai.GenerateContentConfig{MaxOutputTokens: 4})
	if err != nil || text != "Explaining this." || reason != genai.FinishReasonMaxTokens {
		t.Errorf("%q, %s, %v", text, reason, err)
	}
	if got := b.used(); got != 8+5 {
		t.Errorf("%d are used", got)
	}
}
