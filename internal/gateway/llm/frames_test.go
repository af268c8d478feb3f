package llm

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// framed writes a frame by the format's description.
func framed(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(append(h, byte(len(headers[i]))), headers[i]...), 7, 0, byte(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	number := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	text := number(uint32(16+len(h)+len(payload))) + number(uint32(len(h)))
	text += number(crc32.ChecksumIEEE([]byte(text))) + string(h) + payload
	return text + number(crc32.ChecksumIEEE([]byte(text)))
}

func eventFrame(kind, payload string) string {
	return framed(payload, ":event-type", kind, ":content-type", "application/json", ":message-type", "event")
}

// said are the events of a stream of frames, whose checksums are right.
func said(t *testing.T, text string) (all []string) {
	t.Helper()
	for b := []byte(text); len(b) > 0; {
		n, h := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		frame := b[:n]
		if binary.BigEndian.Uint32(frame[8:]) != crc32.ChecksumIEEE(frame[:8]) || binary.BigEndian.Uint32(frame[n-4:]) != crc32.ChecksumIEEE(frame[:n-4]) {
			t.Fatalf("the checksums of %q are wrong", frame)
		}
		if !json.Valid(frame[12+h : n-4]) {
			t.Fatalf("%q", frame)
		}
		kind, _, _ := strings.Cut(strings.SplitAfter(string(frame[12:12+h]), ":event-type\x07")[1][2:], "\r:")
		all = append(all, kind+" "+string(frame[12+h:n-4]))
		b = b[n:]
	}
	return all
}

var (
	framesHeader = http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}
	converse     = []string{
		eventFrame("messageStart", `{"p":"abcd","role":"assistant"}`),
		eventFrame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Let me see"}},"p":"abcdefgh"}`),
		eventFrame("contentBlockStop", `{"contentBlockIndex":0,"p":"abc"}`),
		eventFrame("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"Hello there"},"p":"abcdefghijk"}`),
		eventFrame("contentBlockStop", `{"contentBlockIndex":1,"p":"abc"}`),
		eventFrame("contentBlockStart", `{"contentBlockIndex":2,"p":"a","start":{"toolUse":{"name":"weather","toolUseId":"tooluse_1"}}}`),
		eventFrame("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"city\":\"Paris\"}"}},"p":"ab"}`),
		eventFrame("contentBlockStop", `{"contentBlockIndex":2,"p":"abc"}`),
		eventFrame("messageStop", `{"p":"ab","stopReason":"tool_use"}`),
		eventFrame("metadata", `{"metrics":{"latencyMs":612},"p":"abcde","serviceTier":{"type":"flex"},"usage":{"cacheDetails":[{"inputTokens":40,"ttl":"1h"},{"inputTokens":60,"ttl":"5m"}],"cacheReadInputTokens":2000,"cacheWriteInputTokens":100,"inputTokens":25,"outputTokens":70,"serverToolUsage":{},"totalTokens":2195}}`),
	}
)

// A stream of Bedrock passes unchanged, and its last frame has the usage, however it is cut into packets.
func TestFrames(t *testing.T) {
	if got := framed(`{"foo": "bar"}`); got != "\x00\x00\x00\x1e\x00\x00\x00\x00\xba\xf2\xf6\x8a{\"foo\": \"bar\"}\xae\x72\x58\xe4" {
		t.Fatalf("%q is not how others write it", got)
	}
	body := strings.Join(converse, "")
	want := Usage{Input: 25 + 2000 + 100, Cached: 2000, CacheWrite: 60, CacheWrite1h: 40, Output: 70, Tier: rule.FlexTier}
	for _, part := range []int{1, 7, 13, 100, 1 << 20} {
		w := NewWatch(request)
		if got := watched(w, framesHeader, 200, body, part); got != body {
			t.Errorf("in parts of %d, the stream does not pass unchanged", part)
		}
		if u, known := w.Used(); u != want || !known {
			t.Errorf("in parts of %d: %+v", part, u)
		}
		w.Free()
	}
	w := NewWatch(request)
	watched(w, header("x.json"), 200, `{"output": {"message": {"role": "assistant", "content": [{"text": "Hello"}]}}, "stopReason": "end_turn", "metrics": {"latencyMs": 1}, "usage": {"inputTokens": 25, "outputTokens": 7, "totalTokens": 2132, "cacheReadInputTokens": 2000, "cacheWriteInputTokens": 100}}`, 10)
	if u, known := w.Used(); u != (Usage{Input: 2125, Cached: 2000, CacheWrite: 100, Output: 7}) || !known {
		t.Errorf("whole: %+v", u)
	}
}

// Of a stream that breaks off, the text counts that has come. What is no frame passes without being read, and what is said of its length
// takes no memory.
func TestFramesBroken(t *testing.T) {
	text := "Let me see" + "Hello there"
	for name, c := range map[string]struct {
		body string
		want int64 // tokens of the answer; 0 if nothing is known
	}{
		"before anything":          {"", 0},
		"in a prelude":             {converse[0] + converse[1][:5], 0},
		"in a text":                {converse[0] + converse[1][:strings.Index(converse[1], "see")], textTokens(int64(len("Let me ")))},
		"before the usage":         {strings.Join(converse[:4], ""), textTokens(int64(len(text)))},
		"by an exception":          {strings.Join(converse[:4], "") + framed(`{"message":"Too many tokens"}`, ":exception-type", "throttlingException", ":message-type", "exception"), textTokens(int64(len(text)))},
		"no frame":                 {converse[1] + "HTTP/1.1 500 and more that is no frame", textTokens(int64(len("Let me see")))},
		"shorter than nothing":     {converse[1] + "\x00\x00\x00\x0f\x00\x00\x00\x00\x00\x00\x00\x00" + converse[9], textTokens(int64(len("Let me see")))},
		"only headers":             {converse[1] + "\x00\x00\x00\x20\x00\x00\x00\x11\x00\x00\x00\x00" + converse[9], textTokens(int64(len("Let me see")))},
		"too long":                 {converse[1] + "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00" + converse[9], textTokens(int64(len("Let me see")))},
		"too long headers":         {converse[1] + "\x00\xff\xff\xff\x00\x03\x00\x00\x00\x00\x00\x00" + converse[9], textTokens(int64(len("Let me see")))},
		"a checksum that is wrong": {converse[1][:len(converse[1])-1] + "x" + converse[9], 70},
	} {
		for _, part := range []int{1, 1 << 20} {
			w := NewWatch(request)
			if got := watched(w, framesHeader, 200, c.body, part); got != c.body {
				t.Errorf("%s: it does not pass unchanged", name)
			}
			if u, known := w.Used(); u.Output != c.want || known != (c.want > 0) {
				t.Errorf("%s: %+v %v, want %d", name, u, known, c.want)
			}
			w.Free()
		}
	}
}

// A stream that has used more than it may ends after the frame that is under way, with frames that clients can read.
func TestFramesCut(t *testing.T) {
	body := strings.Join(converse, "")
	for _, part := range []int{1, 50, 1 << 20} {
		w := NewWatch(request)
		w.Over = func(u Usage) bool { return u.Output > 4 }
		if w.Begin(200, framesHeader); !w.Shortens() {
			t.Error("it may not be shorter")
		}
		got := watched(w, framesHeader, 200, body, part)
		rest, found := strings.CutPrefix(got, strings.Join(converse[:4], ""))
		if !found || !w.Cut() {
			t.Fatalf("in parts of %d: %q", part, got)
		}
		if all := fmt.Sprint(said(t, rest)); all != `[contentBlockStop {"contentBlockIndex":1} messageStop {"stopReason":"max_tokens"} `+
			`metadata {"usage":{"inputTokens":500,"outputTokens":6,"totalTokens":506},"metrics":{"latencyMs":0}}]` {
			t.Errorf("in parts of %d: %s", part, all)
		}
		w.Free()
	}
	w := NewWatch(request)
	w.Over = func(u Usage) bool { return u.Output > 50 } // which the vendor says when the stream is over
	if got := watched(w, framesHeader, 200, body, 50); got != body || w.Cut() {
		t.Error("a stream that has ended was cut")
	}
}

// What requests by Converse ask for is in fields of their own, and their model in the path.
func TestParseConverse(t *testing.T) {
	const id = "us.anthropic.claude-3-5-sonnet-20240620-v1:0"
	const arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/" + id
	message := `"messages":[{"role":"user","content":[{"text":"` + strings.Repeat("word ", 40) + `"},{"cachePoint":{"type":"default"}}]}]`
	for _, c := range []struct {
		path, body string
		want       Request
	}{
		{"/model/" + id + "/converse", `{` + message + `,"inferenceConfig":{"maxTokens":300}}`, Request{API: rule.Bedrock, Generates: true, Prompt: rule.Prompt{Model: id, Input: 58, MaxOutput: 300, Bounded: 1, Caches: true}}},
		{"/model/us.anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse-stream", `{` + message + `}`, Request{API: rule.Bedrock, Generates: true, Stream: true, Prompt: rule.Prompt{Model: id, Input: 58, Answers: 1, Caches: true}}},
		{"/bedrock/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2F" + id + "/converse", `{` + message + `,"inferenceConfig":{"maxTokens":0},"serviceTier":{"type":"priority"}}`,
			Request{API: rule.Bedrock, Generates: true, Prompt: rule.Prompt{Model: arn, Input: 58, Answers: 1, Caches: true, Tier: rule.PriorityTier}}},
		{"/model/x/converse", `{` + message + `,"inferenceConfig":{"maxTokens":1},"additionalModelRequestFields":{"max_tokens":900}}`, Request{API: rule.Bedrock, Generates: true, Prompt: rule.Prompt{Model: "x", Input: 58, MaxOutput: 900, Bounded: 1, Caches: true}}},
		{"/model/" + id + "/invoke", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,` + message + `}`, Request{API: rule.Anthropic, Generates: true, Prompt: rule.Prompt{Model: id, Input: 58, MaxOutput: 9, Bounded: 1, Caches: true}}},
	} {
		got, ok := Parse(c.path, []byte(c.body), rule.AutoAPI)
		if !ok || got.Prompt != c.want.Prompt || got.API != c.want.API || got.Stream != c.want.Stream || got.Wrong != "" {
			t.Errorf("%s %s:\n got %+v\nwant %+v", c.path, c.body, got, c.want)
		}
	}
	for body, want := range map[string]string{
		`{"inferenceConfig":{"maxTokens":1,"maxTokens":9}}`:                  "several values of maxTokens",
		`{"inferenceConfig":{"maxTokens":1},"inferenceConfig":{}}`:           "several values of inferenceConfig",
		`{"inferenceConfig":{"MaxTokens":9}}`:                                "some servers take for maxTokens",
		`{"inferenceConfig":{"maxTokens":[9]}}`:                              "maxTokens that is not a number",
		`{"serviceTier":{"type":"flex"},"service_tier":"priority"}`:          "several values of service_tier",
		`{"additionalModelRequestFields":{"max_tokens":1,"max_gen_len":90}}`: "several values of max_tokens",
	} {
		if got, _ := Parse("/model/x/converse", []byte(body), rule.AutoAPI); !strings.Contains(got.Wrong, want) {
			t.Errorf("%s: %q", body, got.Wrong)
		}
	}
	if !SamePath("/model/arn:a%2Fb/converse", "/model/arn:a/b/converse") || SamePath("/model/a/converse", "/model/b/converse") {
		t.Error("paths of the same model differ, or others do not")
	}
}

// InvokeModel has the fields of each model's vendor. The largest bound counts, wherever it is.
func TestParseInvoke(t *testing.T) {
	for body, want := range map[string]int64{ // with 1000 for an answer that has no bound
		`{"inferenceConfig":{"maxTokens":5000},"max_tokens":1}`:          5000,
		`{"inferenceConfig":{"max_new_tokens":5000},"max_tokens":1}`:     5000,
		`{"prompt":"hi","max_gen_len":2048}`:                             2048,
		`{"prompt":"hi","max_gen_len":"2048","Max_Gen_Len":1}`:           2048,
		`{"prompt":"hi","max_gen_len":-1,"max_tokens":1}`:                1000,
		`{"prompt":"hi","max_gen_len":[2048],"max_tokens":1}`:            1000,
		`{"prompt":"hi","max_gen_len":{"x":1},"max_tokens":1}`:           1000,
		`{"prompt":"hi","max_gen_len":null,"max_tokens":7}`:              7,
		`{"prompt":"hi","max_tokens_to_sample":300}`:                     300,
		`{"inputText":"hi","textGenerationConfig":{"maxTokenCount":96}}`: 96,
		`{"prompt":"hi","maxTokens":50,"n":3}`:                           150,
		`{"messages":[],"max_completion_tokens":60}`:                     60,
		`{"messages":[]}`: 1000,
	} {
		for _, action := range []string{"invoke", "invoke-with-response-stream"} {
			if r, ok := Parse("/model/x/"+action, []byte(body), rule.AutoAPI); estimated(&r).Output != want || !ok || r.Wrong != "" {
				t.Errorf("%s %s: %d, want %d; %s", action, body, estimated(&r).Output, want, r.Wrong)
			}
		}
	}
	if r, _ := Parse("/v1/chat/completions", []byte(`{"messages":[],"max_tokens":5,"max_gen_len":9,"maxTokens":9}`), rule.AutoAPI); r.MaxOutput != 5 {
		t.Errorf("fields of others bound a chat to %d", r.MaxOutput)
	}
}
