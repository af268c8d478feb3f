package llm

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// shapes are responses around a usage, by the API; what is behind a % is the model, the usage, and more members.
var shapes = map[string]string{
	"chat":        `{"id": "1", "object": "chat.completion", "model": %q, "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], "usage": %s%s}`,
	"responses":   `{"id": "1", "object": "response", "status": "completed", "model": %q, "usage": %s%s}`,
	"embeddings":  `{"object": "list", "data": [{"object": "embedding", "embedding": [0.1], "index": 0}], "model": %q, "usage": %s%s}`,
	"image":       `{"created": 1, "model": %q, "data": [{"b64_json": "AAAA"}], "usage": %s%s}`,
	"anthropic":   `{"id": "1", "type": "message", "role": "assistant", "model": %q, "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": %s%s}`,
	"gemini":      `{"modelVersion": %q, "candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP", "index": 0}], "usageMetadata": %s%s}`,
	"converse":    `{"output": {"message": {"role": "assistant", "content": [{"text": "%.0[1]sHi"}]}}, "stopReason": "end_turn", "usage": %[2]s%[3]s}`,
	"chat-stream": "data: {\"id\": \"1\", \"model\": %[1]q, \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}], \"usage\": null}\n\ndata: {\"id\": \"1\", \"model\": %[1]q, \"choices\": [], \"usage\": %[2]s%[3]s}\n\ndata: [DONE]\n\n",
	"groq-stream": "data: {\"id\": \"1\", \"model\": %q, \"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}], \"x_groq\": {\"id\": \"1\", \"usage\": %s}%s}\n\ndata: [DONE]\n\n",
	"anthropic-stream": "event: message_start\ndata: {\"type\": \"message_start\", \"message\": {\"id\": \"1\", \"type\": \"message\", \"model\": %[1]q, \"usage\": {\"input_tokens\": 1, \"output_tokens\": 1}}}\n\n" +
		"event: message_delta\ndata: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"end_turn\"}, \"usage\": %[2]s%[3]s}\n\nevent: message_stop\ndata: {\"type\": \"message_stop\"}\n\n",
	"gemini-stream": "data: {\"modelVersion\": %[1]q, \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"H\"}]}, \"index\": 0}], \"usageMetadata\": {\"promptTokenCount\": 1, \"totalTokenCount\": 1}}\n\n" +
		"data: {\"modelVersion\": %[1]q, \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"i\"}]}, \"finishReason\": \"STOP\", \"index\": 0}], \"usageMetadata\": %[2]s%[3]s}\n\n",
}

// What responses cost is exact to the millionth of a dollar, from the vendor's bytes to the price list.
func TestGoldenPrices(t *testing.T) {
	var list string
	var lines []string
	for line := range strings.Lines(kept(t, "priced.txt")) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "" || line[0] == '#':
		case line[0] == '{':
			list = line
		default:
			lines = append(lines, line)
		}
	}
	prices := new(rule.Prices)
	if err := prices.Read("priced.txt", strings.NewReader(list)); err != nil {
		t.Fatal(err)
	}
	set, problems := rule.Parse("", []byte(`{"rules": [{"id": "spend", "key": "user", "limit": "20usd/day", "tokens": {"price": "usd"}}]}`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		field := append(strings.Split(line, "\t"), "")
		api, model, from, usage, more := field[0], field[1], field[3], field[4], field[5]
		want, err := strconv.ParseInt(field[2], 10, 64)
		if err != nil || shapes[api] == "" || !json.Valid([]byte(usage)) {
			t.Fatalf("%v: %s", err, line)
		}
		if more != "" {
			more = ", " + strings.Trim(more, "{}")
		}
		name := "x.json"
		if strings.HasSuffix(api, "-stream") {
			name = "x.sse"
		}
		shape := shapes[api]
		if strings.Contains(usage, `"completion_tokens": 0,`) {
			shape = strings.Replace(shape, "Hi", "", 1) // no tokens are no text
		}
		w := NewWatch(request)
		watched(w, header(name), 200, fmt.Sprintf(shape, model, usage, more), 50)
		u, known := w.Used()
		w.Free()
		if got, found := table.Rules()[0].TokenCost(model, u); got != want || !known || !found {
			t.Errorf("%s %s (%s) costs %d, want %d: %s is %s", api, model, from, got, want, usage, named(u))
		}
	}
	if len(lines) < 150 {
		t.Errorf("only %d responses have a price", len(lines))
	}
}
