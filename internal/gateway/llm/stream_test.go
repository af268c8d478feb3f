package llm

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// kept returns a response of testdata.
func kept(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func header(name string) http.Header {
	if strings.HasSuffix(name, ".json") {
		return http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	}
	return http.Header{"Content-Type": {"text/event-stream"}}
}

var request = Request{Generates: true, Prompt: rule.Prompt{Input: 500, MaxOutput: 900}}

// watched passes a response in parts of so many bytes, and returns what the client gets.
func watched(w *Watch, h http.Header, status int, body string, part int) string {
	w.Begin(status, h)
	var got strings.Builder
	for len(body) > 0 && !w.Cut() {
		n := min(part, len(body))
		got.Write(w.Pass([]byte(body[:n])))
		body = body[n:]
	}
	got.Write(w.End())
	return got.String()
}

// Every vendor's answers, whole and as streams, have the usage that the vendor reports, and
// pass unchanged, however they are cut into packets.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		want   Usage
	}{
		{"openai-chat.json", 200, Usage{Input: 1117, Cached: 1024, Output: 46, Reasoning: 20}},
		{"openai-chat-tools.json", 200, Usage{Input: 82, Output: 17}},
		{"openai-responses.json", 200, Usage{Input: 328, Cached: 100, Output: 356, Reasoning: 200}},
		{"openai-embeddings.json", 200, Usage{Input: 8}},
		{"openai-chat.sse", 200, Usage{Input: 19, Cached: 3, Output: 10, Reasoning: 2}},
		{"openai-responses.sse", 200, Usage{Input: 37, Output: 11, Reasoning: 5}},
		{"anthropic.json", 200, Usage{Input: 2095 + 1024 + 300, Cached: 1024, CacheWrite: 300, Output: 503}},
		{"anthropic.sse", 200, Usage{Input: 25 + 100 + 7, Cached: 100, CacheWrite: 7, Output: 15}},
		{"anthropic-tools.sse", 200, Usage{Input: 472, Output: 89}},
		{"gemini.json", 200, Usage{Input: 4 + 6, Cached: 2, Output: 50 + 30, Reasoning: 30}},
		{"gemini.sse", 200, Usage{Input: 8, Output: 16 + 20, Reasoning: 20}},
		{"gemini-array.json", 200, Usage{Input: 8, Output: 16}},

		{"openai-error.json", 429, Usage{}},
		{"anthropic-error.json", 529, Usage{}},
		{"gemini-error.json", 400, Usage{}},
	} {
		body := kept(t, c.name)
		for _, part := range []int{1, 2, 7, 64, 1 << 20} {
			w := NewWatch(request)
			if got := watched(w, header(c.name), c.status, body, part); got != body {
				t.Errorf("%s in parts of %d: changed to\n%s", c.name, part, got)
			}
			if got, known := w.Used(); got != c.want || !known {
				t.Errorf("%s in parts of %d: %+v, %v, want %+v", c.name, part, got, known, c.want)
			}
			if !w.Ended(true) {
				t.Errorf("%s in parts of %d: the model has not ended", c.name, part)
			}
			w.Free()
		}
	}
}

// Usage that is repeated is that of the whole, not one more.
func TestRepeatedUsage(t *testing.T) {
	w := NewWatch(request)
	watched(w, header("x.sse"), 200, `data: {"usage":{"prompt_tokens":5,"completion_tokens":3}}
data: {"usage":{"prompt_tokens":5,"completion_tokens":7}}

data: {"usage":{"prompt_tokens":0,"completion_tokens":0}}

`, 9)
	if got, _ := w.Used(); got != (Usage{Input: 5, Output: 7}) {
		t.Errorf("%+v", got)
	}
	// Before a stream begins, some report zeros.
	w = NewWatch(request)
	watched(w, header("x.sse"), 200, `data: {"usage":{"prompt_tokens":0,"completion_tokens":0}}`+"\n\n", 9)
	if got, known := w.Used(); got != (Usage{}) || known {
		t.Errorf("%+v, %v", got, known)
	}
}

// Usage that a stream reports on its way, as some servers do if the client asks, is that of the
// text up to there. What follows counts, too, and can be cut.
func TestUsageOnTheWay(t *testing.T) {
	const text = `"choices":[{"index":0,"delta":{"content":"abcdefghijkl"}}]`
	for name, c := range map[string]struct {
		body string
		want Usage
	}{
		"only first":    {`{"choices":[{"index":0,"delta":{"content":""}}],"usage":{"prompt_tokens":9,"completion_tokens":0}}|{` + text + `}|{` + text + `}`, Usage{Input: 9, Output: 6}},
		"with all":      {`{` + text + `,"usage":{"prompt_tokens":9,"completion_tokens":4}}|{` + text + `,"usage":{"prompt_tokens":9,"completion_tokens":5}}`, Usage{Input: 9, Output: 5}},
		"until the end": {`{` + text + `,"usage":{"prompt_tokens":9,"completion_tokens":2}}|{` + text + `}|{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}|[DONE]`, Usage{Input: 9, Output: 4}},
		"broken off":    {`{` + text + `,"usage":{"prompt_tokens":9,"completion_tokens":4}}|{"choices":[{"index":0,"delta":{"content":"abcdefghijkl`, Usage{Input: 9, Output: 6}},
	} {
		body := "data: " + strings.ReplaceAll(c.body, "|", "\n\ndata: ")
		if name != "broken off" {
			body += "\n\n"
		}
		for _, part := range []int{1, 1 << 20} {
			w := NewWatch(request)
			watched(w, header("x.sse"), 200, body, part)
			if got, known := w.Used(); got != c.want || !known {
				t.Errorf("%s in parts of %d: %+v, want %+v", name, part, got, c.want)
			}
		}
	}
	w := NewWatch(request)
	w.Over = func(u Usage) bool { return u.Output > 9 }
	var body strings.Builder
	for i := range 20 {
		fmt.Fprintf(&body, `data: {"choices":[{"index":0,"delta":{"content":"abcd"}}],"usage":{"prompt_tokens":9,"completion_tokens":%d}}`+"\n\n", i+1)
	}
	if got := watched(w, header("x.sse"), 200, body.String(), 50); !w.Cut() || strings.Count(got, "abcd") != 10 {
		t.Errorf("the client gets\n%s", got)
	}
}

// A stream that breaks off is counted by what was seen: what the vendor reported up to then,
// and the text. It is never free.
func TestBrokenOff(t *testing.T) {
	for _, c := range []struct {
		name, until string
		want        Usage
		known       bool
	}{
		{"openai-chat.sse", "", Usage{}, false},
		{"openai-chat.sse", `"delta":{"role":"assistant"`, Usage{}, false},
		{"openai-chat.sse", `"content":"Hello"`, Usage{Input: 500, Output: 2}, true},
		{"openai-chat.sse", `"content":" there, you"`, Usage{Input: 500, Output: 4}, true},
		{"openai-responses.sse", `"delta":"Hi there`, Usage{Input: 500, Output: 2}, true},
		{"anthropic.sse", `"service_tier"`, Usage{Input: 132, Cached: 100, CacheWrite: 7, Output: 1}, true},
		{"anthropic.sse", `"text":"Hello, and`, Usage{Input: 132, Cached: 100, CacheWrite: 7, Output: 3}, true},
		{"gemini.sse", "\r\n\r\n", Usage{Input: 8, Output: 5}, true},
		{"openai-chat.json", `"content": "Hello! How`, Usage{Input: 500, Output: 3}, true},
		{"openai-chat.json", `{`, Usage{}, false},
	} {
		body := kept(t, c.name)
		n := strings.Index(body, c.until)
		if n < 0 {
			t.Fatalf("%s has no %q", c.name, c.until)
		}
		body = body[:n+len(c.until)]
		w := NewWatch(request)
		if got := watched(w, header(c.name), 200, body, 10); got != body {
			t.Errorf("%s until %s: the client gets\n%s", c.name, c.until, got)
		}
		if got, known := w.Used(); got != c.want || known != c.known {
			t.Errorf("%s until %s: %+v, %v, want %+v", c.name, c.until, got, known, c.want)
		}
		if w.Ended(false) {
			t.Errorf("%s until %s: the model has ended", c.name, c.until)
		}
	}
}

// A number below zero is none, so the text counts. One that no vendor means is as large as a number can be, which rules bound.
func TestAbsurdUsage(t *testing.T) {
	for usage, want := range map[string]Usage{
		`"prompt_tokens":9,"completion_tokens":-5`:               {Input: 9, Output: 3},
		`"prompt_tokens":-9,"completion_tokens":-1e300`:          {Input: 500, Output: 3},
		`"prompt_tokens":9,"completion_tokens":1000000000000000`: {Input: 9, Output: MaxTokens},
		`"prompt_tokens":9,"completion_tokens":1e400`:            {Input: 9, Output: MaxTokens},
	} {
		w := NewWatch(request)
		watched(w, header("x.json"), 200, `{"choices":[{"message":{"content":"abcdefghijkl"},"finish_reason":"stop"}],"usage":{`+usage+`}}`, 9)
		if got, known := w.Used(); got != want || !known {
			t.Errorf("%s: %+v, %v, want %+v", usage, got, known, want)
		}
	}
}

// Usage without a number of the answer, or with zero, does not make its text free.
func TestUsageWithoutAnswer(t *testing.T) {
	for usage, want := range map[string]Usage{
		`"prompt_tokens":9,"completion_tokens":7`:      {Input: 9, Output: 7},
		`"prompt_tokens":9`:                            {Input: 9, Output: 3},
		`"prompt_tokens":9,"completion_tokens":0`:      {Input: 9, Output: 3},
		`"prompt_tokens":9,"completion_tokens":null`:   {Input: 9, Output: 3},
		`"prompt_tokens":9,"completion_tokens":"many"`: {Input: 9, Output: 3},
		`"prompt_tokens":9,"total_tokens":19`:          {Input: 9, Output: 3},
		`"input_tokens":9`:                             {Input: 9, Output: 3},
		`"inputTokens":9,"outputTokens":0`:             {Input: 9, Output: 3},
	} {
		for name, body := range map[string]string{
			"x.json": `{"choices":[{"message":{"content":"abcdefghijkl"},"finish_reason":"stop"}],"usage":{` + usage + `}}`,
			"x.sse":  `data: {"choices":[{"delta":{"content":"abcdefghijkl"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":{` + usage + "}}\n\ndata: [DONE]\n\n",
		} {
			w := NewWatch(request)
			watched(w, header(name), 200, body, 9)
			if got, known := w.Used(); got != want || !known || !w.Ended(true) {
				t.Errorf("%s %s: %+v, %v, want %+v", name, usage, got, known, want)
			}
			w.Free()
		}
	}
	w := NewWatch(request)
	watched(w, header("x.json"), 200, `{"candidates":[{"content":{"parts":[{"text":"abcdefghijkl"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":1}}`, 9)
	if got, _ := w.Used(); got != (Usage{Input: 9, Output: 3, Reasoning: 1}) {
		t.Errorf("only thoughts are counted: %+v", got)
	}
}

// Of what cannot be read, nothing is known.
func TestOpaque(t *testing.T) {
	body := kept(t, "openai-chat.json")
	for _, h := range []http.Header{
		{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
		{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"br"}},
		{"Content-Type": {"audio/mpeg"}},
		{},
	} {
		w := NewWatch(request)
		if got := watched(w, h, 200, body, 10); got != body {
			t.Errorf("%v: changed to\n%s", h, got)
		}
		if got, known := w.Used(); got != (Usage{}) || known {
			t.Errorf("%v: %+v, %v", h, got, known)
		}
	}
}

// The event that the client did not ask for is removed, and only that.
func TestStrip(t *testing.T) {
	body := kept(t, "openai-chat.sse")
	begin := strings.Index(body, "data: "+`{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[],"usage":{`)
	end := strings.Index(body, "data: [DONE]")
	if begin < 0 || end < begin {
		t.Fatal("testdata has no event with usage")
	}
	want := body[:begin] + body[end:]
	for _, crlf := range []bool{false, true} {
		body, want := body, want
		if crlf {
			body, want = strings.ReplaceAll(body, "\n", "\r\n"), strings.ReplaceAll(want, "\n", "\r\n")
		}
		for part := 1; part < len(body); part += 1 + part/3 {
			w := NewWatch(request)
			w.Strip()
			if got := watched(w, header("x.sse"), 200, body, part); got != want {
				t.Fatalf("in parts of %d the client gets\n%s", part, got)
			}
			if got, _ := w.Used(); got.Output != 10 {
				t.Errorf("%+v", got)
			}
		}
	}
	// Azure begins with an empty list of choices, and some put the usage into the last chunk.
	for _, event := range []string{
		`data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}],"usage":null}` + "\n\n",
		`data: {"usage":{"prompt_tokens":5},"choices":[{"index":0,"delta":{}}]}` + "\n\n",
		": comment\n\n", "data: [DONE]\n\n", "data: {\"choices\":[],\"usage\":{",
	} {
		for _, part := range []int{1, 5, 1000} {
			w := NewWatch(request)
			w.Strip()
			if got := watched(w, header("x.sse"), 200, event, part); got != event {
				t.Errorf("%q became %q", event, got)
			}
		}
	}
}

// Every event passes as soon as it is whole; without anything to remove, every byte does.
func TestAtOnce(t *testing.T) {
	body := kept(t, "openai-chat.sse")
	for _, strip := range []bool{false, true} {
		w := NewWatch(request)
		if strip {
			w.Strip()
		}
		w.Begin(200, header("x.sse"))
		for event := range strings.SplitAfterSeq(body, "\n\n") {
			got := string(w.Pass([]byte(event)))
			if removed := strip && strings.Contains(event, `"choices":[],"usage":{`); got != event && !removed {
				t.Errorf("%q: %q passed", event, got)
			}
		}
	}
	w := NewWatch(request)
	w.Strip()
	w.Begin(200, header("x.sse"))
	const some = `data: {"choices":[{"delta":{"content":"a long`
	if got := string(w.Pass([]byte(some))); got != some {
		t.Errorf("%q passed of an event that cannot be the one", got)
	}
	w = NewWatch(request)
	w.Begin(200, header("x.sse"))
	for i := range len(body) {
		if got := w.Pass([]byte(body[i : i+1])); len(got) != 1 {
			t.Fatalf("byte %d waits", i)
		}
	}
}

// Memory does not grow with what an upstream sends.
func TestEndless(t *testing.T) {
	part := []byte(strings.Repeat(`{"choices":[`, 1000) + strings.Repeat("x", 10_000))
	for _, begin := range []string{`data: {"choices":[],"usage":`, "data: ", "data", ": ", "event: ", `data: {"choices":[{"delta":{"content":"`} {
		w := NewWatch(request)
		w.Strip()
		w.Begin(200, header("x.sse"))
		in, out := len(begin), len(w.Pass([]byte(begin)))
		for range 1000 {
			in += len(part)
			out += len(w.Pass(part))
		}
		if room := cap(w.held) + cap(w.out); room > 4*maxHeld+2*len(part) {
			t.Errorf("%s: %d bytes are kept", begin, room)
		}
		if out += len(w.End()); out != in {
			t.Errorf("%s: %d of %d bytes passed", begin, out, in)
		}
	}
}

// FuzzPass: how a response is cut into packets changes neither what passes nor what is counted,
// and nothing is lost but one kind of event.
func FuzzPass(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(3), strings.HasSuffix(name, ".sse"), true)
		f.Add(b, uint8(100), strings.HasSuffix(name, ".sse"), false)
	}
	for _, text := range alikes {
		f.Add([]byte(text), uint8(0), true, true)
	}
	f.Fuzz(func(t *testing.T, body []byte, part uint8, sse, strip bool) {
		h := header("x.json")
		if sse {
			h = header("x.sse")
		}
		run := func(part int) (string, Usage) {
			w := NewWatch(request)
			if strip {
				w.Strip()
			}
			got := watched(w, h, 200, string(body), part)
			u, known := w.Used()
			w.Free()
			if u.Input < 0 || u.Output < 0 || u.Cached > u.Input || u.Reasoning > u.Output || u.Input > MaxTokens || u.Output > MaxTokens || known && u.Input+u.Output == 0 {
				t.Fatalf("%+v", u)
			}
			return got, u
		}
		whole, all := run(len(body) + 1)
		parts, sum := run(int(part) + 1)
		if all != sum || whole != parts && len(body) < maxHeld {
			t.Fatalf("%+v %q in one part, %+v %q in parts of %d", all, whole, sum, parts, part+1)
		}
		if (!strip || !sse) && whole != string(body) {
			t.Fatalf("%q became %q", body, whole)
		}
	})
}

// To read an event takes no memory.
func TestPassAllocations(t *testing.T) {
	event := []byte(`data: {"id":"c1","choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n")
	w := NewWatch(request)
	w.Begin(200, header("x.sse"))
	if n := testing.AllocsPerRun(100, func() { w.Pass(event) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
