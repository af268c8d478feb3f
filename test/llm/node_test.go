package llm

import (
	_ "embed"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// script is embedded, so that go test sees when it changes.
//
//go:embed node/client.mjs
var script string

// node is a process with the packages openai and @anthropic-ai/sdk. The package asks for Node 22 or later, but what
// is used here works with Node 20, too, which the dashboard is built with.
type node struct {
	b   *bench
	ask *json.Encoder
	out *json.Decoder
}

// said is a line that the script writes. An event and an answer have the fields of both APIs.
type said struct {
	Event, Done *struct {
		Type    string
		Choices []struct {
			Delta, Message struct {
				Content   string
				ToolCalls []struct{ Function struct{ Name string } } `json:"tool_calls"`
			}
		}
		Usage struct {
			TotalTokens int64 `json:"total_tokens"`
		}
		OutputText string                              `json:"output_text"`
		Content    []struct{ Type, Text, Name string } // of Anthropic
	}
	Error *struct {
		Class, Code, Message string
		Status               int
		Headers              map[string]string
	}
}

type object = map[string]any

func (b *bench) node() *node {
	b.t.Helper()
	testkit.InstallNode(b.t, "node")
	cmd := exec.Command("node", "--input-type=module", "--eval", script)
	cmd.Dir = "node"
	cmd.Stderr = b.t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		in.Close()
		if b.t.Failed() {
			cmd.Process.Kill() // it may wait for an answer
		}
		if err := cmd.Wait(); err != nil && !b.t.Failed() {
			b.t.Error(err)
		}
	})
	return &node{b: b, ask: json.NewEncoder(in), out: json.NewDecoder(out)}
}

// request begins a request, whose lines are then read with next.
func (n *node) request(api string, retries int, params object) {
	n.b.t.Helper()
	n.send(object{"url": n.b.URL, "api": api, "retries": retries, "params": params})
}

func (n *node) send(line object) {
	n.b.t.Helper()
	if err := n.ask.Encode(line); err != nil {
		n.b.t.Fatal(err)
	}
}

// leave asks for a stream of the model "slow" and ends the request after two of its events.
func (n *node) leave(api string, params object) {
	n.b.t.Helper()
	n.send(object{"url": n.b.URL, "api": api, "retries": 0, "params": params, "leave": 2})
	n.next()
	n.b.next <- struct{}{}
	n.next()
	if line := n.next(); line.Done == nil {
		n.b.t.Errorf("%+v", line)
	}
}

func (n *node) next() (line said) {
	n.b.t.Helper()
	if err := n.out.Decode(&line); err != nil {
		n.b.t.Fatal(err)
	}
	return line
}

// get makes a request that is answered.
func (n *node) get(api string, params object) said {
	n.b.t.Helper()
	n.request(api, 0, params)
	line := n.next()
	if line.Done == nil {
		n.b.t.Fatalf("%+v", line.Error)
	}
	return line
}

// greeting is a chat. The fields are names and values.
func greeting(model string, fields ...any) object {
	o := object{"model": model, "messages": []object{{"role": "user", "content": "Hello"}}}
	for i := 0; i < len(fields); i += 2 {
		o[fields[i].(string)] = fields[i+1]
	}
	return o
}

func TestOpenAINode(t *testing.T) {
	b := newBench(t, usual)
	n := b.node()
	done := n.get("chat", greeting("gpt-4o")).Done
	if !strings.HasPrefix(done.Choices[0].Message.Content, "Hello!") || done.Usage.TotalTokens != 1163 {
		t.Errorf("%+v", done)
	}
	if got := b.used(); got != 1163 {
		t.Errorf("%d are used", got)
	}
	done = n.get("chat", greeting("gpt-4o", "tools", []object{{"type": "function", "function": object{"name": "get_current_weather"}}})).Done
	if done.Choices[0].Message.ToolCalls[0].Function.Name != "get_current_weather" {
		t.Errorf("%+v", done)
	}
	if got := b.used(); got != 1163+99 {
		t.Errorf("%d are used", got)
	}
	done = n.get("responses", object{"model": "gpt-5", "input": "Hello"}).Done
	if !strings.Contains(done.OutputText, "unicorn") || done.Usage.TotalTokens != 684 {
		t.Errorf("%+v", done)
	}
	if got := b.used(); got != 1163+99+684 {
		t.Errorf("%d are used", got)
	}
}

// Every event arrives before the upstream sends the next one, and the usage only if the client
// asked for it.
func TestOpenAINodeStream(t *testing.T) {
	b := newBench(t, usual)
	n := b.node()
	for i, options := range []object{{}, {"include_usage": true}} {
		n.request("chat", 0, greeting("slow", "stream", true, "stream_options", options))
		text, events, usage := "", 0, int64(0)
		line := n.next()
		for ; line.Event != nil; line = n.next() {
			events++
			usage += line.Event.Usage.TotalTokens
			if len(line.Event.Choices) > 0 {
				text += line.Event.Choices[0].Delta.Content
				b.next <- struct{}{}
			}
		}
		if line.Error != nil || text != "Hello there, you" || events != 4+i || usage != int64(29*i) {
			t.Errorf("%v: %q, %d events, a usage of %d, %+v", options, text, events, usage, line.Error)
		}
		if got := b.used(); got != int64(29*(i+1)) {
			t.Errorf("%d are used", got)
		}
	}
	n.request("responses", 0, object{"model": "gpt-5", "input": "Hello", "stream": true})
	last, line := "", n.next()
	for ; line.Event != nil; line = n.next() {
		last = line.Event.Type
	}
	if line.Error != nil || last != "response.completed" {
		t.Errorf("%s, %+v", last, line.Error)
	}
	if got := b.used(); got != 2*29+48 {
		t.Errorf("%d are used", got)
	}
}

func TestOpenAINodeTrouble(t *testing.T) {
	b := newBench(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 120/1d, tokens: {default_output: 100}}]`)
	n := b.node()
	n.request("chat", 0, greeting("broken"))
	if e := n.next().Error; e == nil || e.Class != "BadRequestError" || e.Status != 400 {
		t.Errorf("%+v", e)
	}
	if got := b.used(); got != 0 {
		t.Errorf("after an error, %d are used", got)
	}
	n.request("chat", 0, greeting("torn", "stream", true))
	line := n.next()
	for ; line.Event != nil; line = n.next() {
	}
	if line.Error == nil {
		t.Error("a stream that broke off seems whole")
	}
	if got := b.used(); got != 5+4 { // the prompt, and 16 bytes
		t.Errorf("after a stream that broke off, %d are used", got)
	}
	// Without retries, the client says at once what to wait for. Where waiting does not help,
	// it does not try again, although it may.
	for _, c := range []struct {
		retries, tokens int
		after, retry    string
	}{{0, 110, "43200", ""}, {2, 200, "", "false"}} {
		b.denied.Store(0)
		n.request("chat", c.retries, greeting("gpt-4o", "max_completion_tokens", c.tokens))
		e := n.next().Error
		if e == nil || e.Class != "RateLimitError" || e.Status != 429 || e.Code != "rate_limit_exceeded" || e.Message == "" {
			t.Fatalf("%d tokens: %+v", c.tokens, e)
		}
		if h := e.Headers; h["retry-after"] != c.after || h["x-should-retry"] != c.retry || h["x-ratelimit-remaining-tokens"] != "111" {
			t.Errorf("%d tokens: %v", c.tokens, h)
		}
		if got := b.denied.Load(); got != 1 {
			t.Errorf("%d tokens: the client tried %d times", c.tokens, got)
		}
	}
}
