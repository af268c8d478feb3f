package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// estimated is what a request may use if an answer has 1000 tokens.
func estimated(r *Request) Usage {
	return Usage{Input: r.Input, Output: r.Output + times(1000, r.Answers())}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		api              API
		want             string // api, model, stream, input+output with a default of 1000
	}{
		{"chat completions", "/v1/chat/completions",
			`{"model":"gpt-4o","messages":[{"role":"user","content":"Say hello."}],"max_tokens":100}`, Auto, "openai gpt-4o false 7+100"},
		{"the newer name, and copies", "/v1/chat/completions",
			`{"model":"o3","n":3,"messages":[{"role":"user","content":"Say hello."}],"max_completion_tokens":100,"stream":true}`, Auto, "openai o3 true 7+300"},
		{"no bound", "/v1/chat/completions",
			`{"model":"gpt-4o","messages":[{"role":"user","content":"Say hello."}],"n":2}`, Auto, "openai gpt-4o false 7+2000"},
		{"tools are shown to the model", "/v1/chat/completions",
			`{"model":"gpt-4o","messages":[{"role":"user","content":"Say hello."}],"max_tokens":1,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`, Auto, "openai gpt-4o false 26+1"},
		{"the old completions", "/v1/completions", `{"model":"m","prompt":"12345678","max_tokens":7,"best_of":2}`, Auto, "openai m false 2+14"},
		{"responses", "/v1/responses", `{"model":"gpt-5","input":"12345678","instructions":"1234","max_output_tokens":50,"stream":true}`, Auto, "openai gpt-5 true 3+50"},
		{"embeddings have no output", "/v1/embeddings", `{"model":"text-embedding-3-small","input":["12345678","1234"]}`, Auto, "openai text-embedding-3-small false 3+0"},
		{"a prompt of tokens", "/v1/embeddings", `{"model":"e","input":[[1,2,3],[4]]}`, Auto, "openai e false 4+0"},
		{"Azure has the model in the path", "/openai/deployments/my-gpt/chat/completions", `{"messages":[{"content":"12345678"}],"max_tokens":5}`, Auto, "openai my-gpt false 4+5"},
		{"messages", "/v1/messages",
			`{"model":"claude-sonnet-4-5","max_tokens":1024,"system":"1234","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"stream":true}`, Auto, "anthropic claude-sonnet-4-5 true 9+1024"},
		{"Gemini", "/v1beta/models/gemini-2.5-flash:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":64,"candidateCount":2}}`, Auto, "gemini gemini-2.5-flash false 6+128"},
		{"Gemini, streaming", "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
			`{"contents":[{"parts":[{"text":"Hello"}]}],"generation_config":{"max_output_tokens":"64"}}`, Auto, "gemini gemini-2.5-flash true 4+64"},
		{"Gemini's embeddings", "/v1beta/models/e:batchEmbedContents", `{"requests":[{"content":{"parts":[{"text":"Hello"}]}}]}`, Auto, "gemini e false 6+0"},
		{"Claude by Vertex AI", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict",
			`{"anthropic_version":"vertex-2023-10-16","messages":[{"content":"12345678"}],"max_tokens":9}`, Auto, "anthropic claude-x true 4+9"},

		{"another path, chat", "/ask", `{"model":"m","messages":[{"content":"12345678"}]}`, Auto, "openai m false 4+1000"},
		{"another path, Anthropic", "/ask", `{"model":"m","system":"s","messages":[{"content":"1"}]}`, Auto, "anthropic m false 3+1000"},
		{"another path, Gemini", "/ask", `{"contents":[{"parts":[{"text":"Hello"}]}]}`, Auto, "gemini  false 4+1000"},
		{"the rule knows better", "/ask", `{"model":"m","messages":[{"content":"12345678"}],"max_tokens":1}`, Anthropic, "anthropic m false 4+1"},
		{"not JSON", "/v1/chat/completions", `12345678`, Auto, "openai  false 2+1000"},
		{"an image", "/v1/images/edits", strings.Repeat("x", 1<<20), Auto, "openai  false 1600+1000"},
		{"nothing that is known", "/v1/chat/completions", `{"question":"12345678"}`, Auto, "openai  false 6+1000"},
	} {
		r, ok := Parse(c.path, []byte(c.body), c.api)
		u := estimated(&r)
		if got := fmt.Sprintf("%v %s %v %d+%d", r.API, r.Model, r.Stream, u.Input, u.Output); !ok || got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The model is what the upstream takes for it, and where upstreams differ, that is said.
func TestParseModel(t *testing.T) {
	const gemini, azure, chat = "/v1beta/models/pro:generateContent", "/openai/deployments/pro/chat/completions", "/v1/chat/completions"
	for _, c := range []struct {
		path, body string
		model      string
		several    bool // models
	}{
		{chat, `{"model":"pro"}`, "pro", false},
		{chat, `{"model":"pro","model":"pro"}`, "pro", false},
		{chat, `{"model":"pro","model":"mini"}`, "mini", true},
		{chat, `{"model":"pro","Model":"mini"}`, "mini", true},
		{chat, `{"model":"pro","mod\u0065l":""}`, "", true},
		{chat, `{"model":"pro","metadata":{"model":"mini"}}`, "pro", false},
		{chat, `{"model":"pro","model":null}`, "pro", false},
		{gemini, `{"model":"mini","contents":[]}`, "pro", false},
		{gemini, `{"model":"mini","model":"nano","contents":[]}`, "pro", false},
		{azure, `{"model":"mini"}`, "pro", false},
		{"/v1/projects/p/models/pro:rawPredict", `{"model":"mini"}`, "pro", false},
		{"/v1/chat/completions:x", `{"model":"pro"}`, "pro", false},
	} {
		if r, _ := Parse(c.path, []byte(c.body), Auto); r.Model != c.model || (r.Several == "model") != c.several {
			t.Errorf("%s %s: %q, several: %v", c.path, c.body, r.Model, r.Several)
		}
	}
}

// A stream is asked for its usage, however a client tries to hide that it is one, or that it does
// not ask itself.
func TestParseHiddenStream(t *testing.T) {
	for body, want := range map[string]string{
		`{"stream":true}`: "asks", `{"stream":"true"}`: "asks", `{"stream":"ON"}`: "asks", `{"stream":1}`: "asks", `{"Stream":true,"stream":false}`: "asks",
		`{"stream":false}`: "", `{"stream":"false"}`: "", `{"stream":0}`: "", `{"stream":null}`: "", `{"stream":""}`: "", `{"stream":{"stream":true}}`: "",
		`{"stream":true,"stream_options":{"include_usage":true}}`:                       "",
		`{"stream":true,"stream_options":{},"Stream_Options":{"include_usage":true}}`:   "several",
		`{"stream":true,"stream_options":{"include_usage":true},"stream_options":null}`: "several",
		`{"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}}`: "several",
		`{"stream":true,"metadata":{"stream_options":{"include_usage":true}}}`:          "asks",
	} {
		r, _ := Parse("/v1/chat/completions", []byte(body), Auto)
		got := ""
		if _, asks := r.AskUsage([]byte(body)); r.Several != "" {
			got = "several"
		} else if asks {
			got = "asks"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// Paths that servers read in different ways are not free, whatever they seem to ask for.
func TestParseNotFree(t *testing.T) {
	for _, path := range []string{
		"/v1/chat/completions;a:countTokens", "/v1/chat/completions;/count_tokens", "/v1/chat/completions%2Fcount_tokens",
		"/v1/chat/completions/..;/count_tokens", "/v1/chat\\count_tokens", "/v1/chat/completions//count_tokens", "/v1/./count_tokens",
	} {
		if _, ok := Parse(path, []byte(`{"messages":[]}`), Auto); !ok {
			t.Errorf("%s uses no tokens", path)
		}
	}
}

// What cannot use tokens is told apart.
func TestParseFree(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/models": "", "/v1/messages/count_tokens": `{"messages":[]}`,
		"/v1beta/models/gemini-2.5-flash:countTokens": `{"contents":[]}`, "/v1/responses/input_tokens": `{"input":"x"}`,
	} {
		if _, ok := Parse(path, []byte(body), Auto); ok {
			t.Errorf("%s uses tokens", path)
		}
	}
}

// Whatever trick hides a bound, the estimate is not smaller than what an upstream may read.
func TestParseHostile(t *testing.T) {
	const prompt = `"messages":[{"content":"x"}]`
	for _, c := range []struct {
		body string
		want int64
	}{
		{`{"max_tokens":1,"max_tokens":9}`, 9},
		{`{"max_tokens":9,"max_tokens":1}`, 9},
		{`{"max_tokens":1,"max_completion_tokens":9}`, 9},
		{`{"max\u005ftokens":9}`, 9},
		{`{"MAX_TOKENS":9}`, 9},
		{`{"max_tokens":"9"}`, 9},
		{`{"max_tokens":8.2}`, 9},
		{`{"max_tokens":9e0}`, 9},
		{`{"max_tokens":1e400}`, MaxTokens},
		{`{"max_tokens":` + strings.Repeat("9", 1000) + `}`, MaxTokens},
		{`{"max_tokens":1000000000,"n":1000000000}`, MaxTokens},
		{`{"max_tokens":0}`, 1000},
		{`{"max_tokens":-5}`, 1000},
		{`{"max_tokens":null}`, 1000},
		{`{"max_tokens":{"max_tokens":1}}`, 1000},
		{`{"max_tokens":"many"}`, 1000},
		{`{"n":1e400}`, MaxTokens},
		{`{"metadata":{"max_tokens":5}}`, 1000},
	} {
		r, _ := Parse("/v1/chat/completions", []byte(c.body[:len(c.body)-1]+","+prompt+"}"), Auto)
		if got := estimated(&r).Output; got != c.want {
			t.Errorf("%.80s: %d, want %d", c.body, got, c.want)
		}
	}
	deep := strings.Repeat(`{"content":[`, 100_000)
	r, _ := Parse("/v1/chat/completions", []byte(`{"messages":`+deep+`"`+strings.Repeat("a b ", 100)+`"`+strings.Repeat("]}", 100_000)+`,"max_tokens":7}`), Auto)
	if u := estimated(&r); u.Input < 100 || u.Output != 7 {
		t.Errorf("a deep body: %+v", u)
	}
}

// Data that is not text costs what an image costs, text what it has.
func TestParseMedia(t *testing.T) {
	ask := func(url string) int64 {
		r, _ := Parse("/v1/chat/completions", []byte(`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}]}`), Auto)
		return r.Input
	}
	around := ask("") // the names
	if got := ask("data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100_000)); got-around > mediaTokens {
		t.Errorf("an image has %d tokens", got)
	}
	for name, text := range map[string]string{"English": strings.Repeat("so many words ", 10_000), "Chinese": strings.Repeat("许多词语", 10_000)} {
		if got := ask(text); got < int64(len(text)/bytesPerToken) {
			t.Errorf("%s: %d bytes have %d tokens", name, len(text), got)
		}
	}
}

func TestAskUsage(t *testing.T) {
	const include = `"stream_options":{"include_usage":true}`
	for _, c := range []struct{ path, body, want string }{ // want is "" if nothing changes
		{"/v1/chat/completions", `{"stream":true,"messages":[]}`, `{` + include + `,"stream":true,"messages":[]}`},
		{"/v1/chat/completions", `{"stream":true,"stream_options":{},"messages":[]}`, `{"stream":true,` + include + `,"messages":[]}`},
		{"/v1/chat/completions", `{"stream":true,"stream_options": {"include_obfuscation":false}}`, `{"stream":true,"stream_options": {"include_usage":true,"include_obfuscation":false}}`},
		{"/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage" : false}}`, `{"stream":true,"stream_options":{"include_usage" : true}}`},
		{"/v1/chat/completions", `{"stream":true,"stream_options":null}`, `{"stream":true,` + include + `}`},
		{"/v1/chat/completions", ` {"stream":true}`, ` {` + include + `,"stream":true}`},
		{"/v1/completions", `{"stream":true,"prompt":"x"}`, `{` + include + `,"stream":true,"prompt":"x"}`},
		{"/ask", `{"stream":true,"messages":[]}`, `{` + include + `,"stream":true,"messages":[]}`},
		{"/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true}}`, ""},
		{"/v1/chat/completions", `{"stream":false}`, ""},
		{"/v1/chat/completions", `{}`, ""},
		{"/v1/chat/completions", `{"stream":true,"stream_options":7}`, ""},
		{"/v1/responses", `{"stream":true,"input":"x"}`, ""},
		{"/v1/messages", `{"stream":true,"messages":[]}`, ""},
	} {
		r, _ := Parse(c.path, []byte(c.body), Auto)
		got, changed := r.AskUsage([]byte(c.body))
		want := c.want
		if want == "" {
			want = c.body
		}
		if string(got) != want || changed != (c.want != "") {
			t.Errorf("%s\n got %s\nwant %s", c.body, got, want)
		}
	}
}

// Whatever the body is, reading it fails nowhere, and asking for usage changes nothing else.
func FuzzParse(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","stream":true,"messages":[{"role":"user","content":"\u4f60\n"}],"max_tokens":1e3,"n":2}`,
		`{"stream":true,"stream_options":{"include_usage":false}}`, `{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":{"a":[]}}`,
		`{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":"5"}}`, `[[[`, `{"a":`, `"`, `{"a\`, `{"\u12`,
	} {
		f.Add("/v1/chat/completions", []byte(body))
		f.Add("/v1beta/models/g:streamGenerateContent", []byte(body))
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		r, ok := Parse(path, body, Auto)
		u := estimated(&r)
		if ok && u.Input < 1 || u.Input > MaxTokens || u.Output < 0 || u.Output > MaxTokens || len(r.Model) > maxKept {
			t.Fatalf("%+v of %q", u, body)
		}
		asking, changed := r.AskUsage(bytes.Clone(body))
		var before, after map[string]any
		if !changed || json.Unmarshal(body, &before) != nil {
			return
		}
		if err := json.Unmarshal(asking, &after); err != nil {
			t.Fatalf("%q became %q: %v", body, asking, err)
		}
		if strings.Contains(strings.ToLower(string(body)), "stream_options") || bytes.Contains(body, []byte(`\u`)) {
			return // of two names that are the same to some, nobody knows which one counts
		}
		if options, _ := after["stream_options"].(map[string]any); options["include_usage"] != true {
			t.Fatalf("%q became %q", body, asking)
		}
		delete(after, "stream_options")
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", body, asking)
		}
	})
}
