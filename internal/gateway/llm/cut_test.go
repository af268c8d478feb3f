package llm

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// datas are the events of a stream, decoded; the closing [DONE] is nil.
func datas(t *testing.T, stream string) (all []map[string]any) {
	t.Helper()
	for event := range strings.SplitSeq(strings.ReplaceAll(stream, "\r\n", "\n"), "\n\n") {
		_, data, found := strings.Cut(event, "data: ")
		if !found {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(data), &v); err != nil && data != "[DONE]" {
			t.Fatalf("%v: %q", err, data)
		}
		all = append(all, v)
	}
	return all
}

// A stream that has used more than it may ends after the event that is under way, in the
// way of its API, whatever packets it comes in.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		name   string
		asked  bool
		output int64 // what it may use
		passed string
		want   string
	}{
		{"openai-chat.sse", false, 1, `"content":"Hello"`,
			`data: {"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n" +
				"data: [DONE]\n\n"},
		{"openai-chat.sse", true, 3, `"content":" there, you"`,
			`data: {"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n" +
				`data: {"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":500,"completion_tokens":4,"total_tokens":504}}` + "\n\n" +
				"data: [DONE]\n\n"},
		{"anthropic.sse", false, 2, `"text":"Hello, and"`,
			"event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":0}` + "\n\n" +
				"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":3}}` + "\n\n" +
				"event: message_stop\ndata: " + `{"type":"message_stop"}` + "\n\n"},
		{"anthropic.sse", false, 0, `"message_start"`,
			"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":1}}` + "\n\n" +
				"event: message_stop\ndata: " + `{"type":"message_stop"}` + "\n\n"},
		{"openai-responses.sse", false, 2, `"delta":"Hi there!"`,
			"event: response.incomplete\ndata: " + `{"type":"response.incomplete","sequence_number":3,"response":{"id":"resp_67c9fdcecf488190","object":"response","created_at":1741290958,"model":"gpt-4.1-2025-04-14",` +
				`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error":null,"output":[],` +
				`"usage":{"input_tokens":500,"input_tokens_details":{"cached_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":503}}}` + "\n\n"},
		{"gemini.sse", false, 4, `"Explaining this."`,
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"MAX_TOKENS","index":0}],` +
				`"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":5,"totalTokenCount":13},"modelVersion":"gemini-2.5-flash","responseId":"r1"}` + "\r\n\r\n"},
	} {
		body := kept(t, c.name)
		for _, part := range []int{1, 13, 1 << 20} {
			w := NewWatch(Request{Generates: true, Prompt: rule.Prompt{Input: 500}, asked: c.asked})
			w.Over = func(u Usage) bool { return u.Output > c.output }
			got := watched(w, header(c.name), 200, body, part)
			begin, found := strings.CutSuffix(got, c.want)
			if !found || !strings.HasPrefix(body, begin) || !strings.Contains(begin, c.passed) || !w.Cut() {
				t.Errorf("%s in parts of %d: the client gets\n%s", c.name, part, got)
			}
			if strings.Count(begin, `"delta":"`)+strings.Count(begin, `"text":"H`)+strings.Count(begin, `"content":"`) > 3 {
				t.Errorf("%s: too much passed:\n%s", c.name, begin)
			}
			if len(w.Pass([]byte("data: x\n\n"))) > 0 {
				t.Errorf("%s: what comes after the end is passed on", c.name)
			}
			datas(t, got)
		}
	}
}

// What is about to end by itself is not cut, and neither is what is no stream of events.
func TestNotCut(t *testing.T) {
	for _, name := range []string{"openai-chat.sse", "anthropic.sse", "gemini.sse", "openai-chat.json", "gemini-array.json"} {
		body := kept(t, name)
		w := NewWatch(request)
		w.Over = func(u Usage) bool {
			return w.tally.ends > 0 || w.tally.whole
		}
		if got := watched(w, header(name), 200, body, 1<<20); got != body || w.Cut() {
			t.Errorf("%s became\n%s", name, got)
		}
	}
}

// Every choice of an answer ends, and names that would break JSON do not.
func TestCutChoices(t *testing.T) {
	body := `data: {"id":"a\"b\n","choices":[{"index":1,"delta":{"content":"twelve bytes"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[{"index":1e9,"delta":{"content":"more"}}]}` + "\n\n"
	w := NewWatch(request)
	w.Over = func(u Usage) bool { return u.Output > 3 }
	all := datas(t, watched(w, header("x.sse"), 200, body, 50))
	if n := len(all); n != 3+maxChoices+1 || all[n-2]["id"] != "a\"b\n" {
		t.Errorf("%d events: %v", n, all)
	}
}

// The scanner agrees with encoding/json about what stands where.
func FuzzScan(f *testing.F) {
	for _, text := range []string{`{"a":{"b":[1,{"b":"x\u00e9\n"}]},"b":2}`, `[{"a":{"b":7}}]`, `{"a":{"c":{"b":1}},"A":{"B":"y"}}`, `{"\u0061":{"b":-1.5e3}}`, ` 5 `} {
		f.Add([]byte(text))
	}
	tree := at(0, "a", at(0, "b", at(1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var got []string
		s := scanner{root: tree}
		s.visit = func(v *value) {
			if v.kind == '"' || v.kind == '0' {
				if v.end <= v.begin || v.end > int64(len(text)) || v.begin < 0 {
					t.Fatalf("%+v of %q", v, text)
				}
				got = append(got, string(text[v.begin:v.end]))
			}
		}
		s.feed(text)
		s.finish()
		var doc any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if !json.Valid(text) || decoder.Decode(&doc) != nil || bytes.Contains(bytes.ToLower(text), []byte(`\u`)) {
			return
		}
		for _, raw := range got {
			if !json.Valid([]byte(raw)) {
				t.Fatalf("%q is not a value of %q", raw, text)
			}
		}
		if n := leaves(doc, 0); n > len(got) && !bytes.Contains(text, []byte(strings.Repeat("[", maxNested))) {
			t.Fatalf("%d values of %q, want at least %d", len(got), text, n)
		}
	})
}

// leaves counts strings and numbers at a.b; names that are given twice count once.
func leaves(v any, level int) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += leaves(e, level)
		}
	case map[string]any:
		for name, e := range v {
			if level < 2 && name == [...]string{"a", "b"}[level] {
				n += leaves(e, level+1)
			}
		}
	case string, json.Number:
		if level == 2 {
			return 1
		}
	}
	return n
}
