package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// estimated is what a request may use if an answer has 1000 tokens.
func estimated(r *Request) Usage {
	return Usage{Input: r.Input, Output: r.MaxOutput + times(1000, r.Answers)}
}

// A request that asks for a cache says so; a prompt that speaks of one does not.
func TestCaches(t *testing.T) {
	for body, want := range map[string]bool{
		`{"messages":[{"role":"user","content":"cache_control"}]}`:                                                             false,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`:           true,
		`{"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[]}`:                true,
		`{"cache_control":{"type":"ephemeral"},"messages":[]}`:                                                                 true,
		`{"tools":[{"name":"f","description":"d","input_schema":{},"cache_control":{"type":"ephemeral"}}],"messages":[]}`:      true,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":null}]}]}`:                           false,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"cache_control":{"type":"ephemeral"}}]}]}]}`: true,
	} {
		if r, ok := Parse("/v1/messages", []byte(body), rule.AutoAPI); r.Caches != want || !ok {
			t.Errorf("%s: %v", body, r.Caches)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		api              rule.ModelAPI
		want             string // api, model, stream, input+output with a default of 1000
	}{
		{"chat completions", "/v1/chat/completions",
			`{"model":"gpt-4o","messages":[{"role":"user","content":"Say hello."}],"max_tokens":100}`, rule.AutoAPI, "openai gpt-4o false 7+100"},
		{"the newer name, and copies", "/v1/chat/completions",
			`{"model":"o3","n":3,"messages":[{"role":"user","content":"Say hello."}],"max_completion_tokens":100,"stream":true}`, rule.AutoAPI, "openai o3 true 7+300"},
		{"no bound", "/v1/chat/completions",
			`{"model":"gpt-4o","messages":[{"role":"user","content":"Say hello."}],"n":2}`, rule.AutoAPI, "openai gpt-4o false 7+2000"},
		{"tools are shown to the model", "/v1/chat/completions",
			`{"model":"gpt-4o","messages":[{"role":"user","content":"Say hello."}],"max_tokens":1,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`, rule.AutoAPI, "openai gpt-4o false 26+1"},
		{"the old completions", "/v1/completions", `{"model":"m","prompt":"12345678","max_tokens":7,"best_of":2}`, rule.AutoAPI, "openai m false 2+14"},
		{"responses", "/v1/responses", `{"model":"gpt-5","input":"12345678","instructions":"1234","max_output_tokens":50,"stream":true}`, rule.AutoAPI, "openai gpt-5 true 3+50"},
		{"embeddings have no output", "/v1/embeddings", `{"model":"text-embedding-3-small","input":["12345678","1234"]}`, rule.AutoAPI, "openai text-embedding-3-small false 3+0"},
		{"a prompt of tokens", "/v1/embeddings", `{"model":"e","input":[[1,2,3],[4]]}`, rule.AutoAPI, "openai e false 4+0"},
		{"Azure has the model in the path", "/openai/deployments/my-gpt/chat/completions", `{"messages":[{"content":"12345678"}],"max_tokens":5}`, rule.AutoAPI, "openai my-gpt false 4+5"},
		{"messages", "/v1/messages",
			`{"model":"claude-sonnet-4-5","max_tokens":1024,"system":"1234","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"stream":true}`, rule.AutoAPI, "anthropic claude-sonnet-4-5 true 9+1024"},
		{"Gemini", "/v1beta/models/gemini-2.5-flash:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":64,"candidateCount":2}}`, rule.AutoAPI, "gemini gemini-2.5-flash false 6+128"},
		{"Gemini, streaming", "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
			`{"contents":[{"parts":[{"text":"Hello"}]}],"generation_config":{"max_output_tokens":"64"}}`, rule.AutoAPI, "gemini gemini-2.5-flash true 4+64"},
		{"Gemini's embeddings", "/v1beta/models/e:batchEmbedContents", `{"requests":[{"content":{"parts":[{"text":"Hello"}]}}]}`, rule.AutoAPI, "gemini e false 6+0"},
		{"Claude by Vertex AI", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict",
			`{"anthropic_version":"vertex-2023-10-16","messages":[{"content":"12345678"}],"max_tokens":9}`, rule.AutoAPI, "anthropic claude-x true 4+9"},

		{"another path, chat", "/ask", `{"model":"m","messages":[{"content":"12345678"}]}`, rule.AutoAPI, "openai m false 4+1000"},
		{"another path, Anthropic", "/ask", `{"model":"m","system":"s","messages":[{"content":"1"}]}`, rule.AutoAPI, "anthropic m false 3+1000"},
		{"another path, Gemini", "/ask", `{"contents":[{"parts":[{"text":"Hello"}]}]}`, rule.AutoAPI, "gemini  false 4+1000"},
		{"the rule knows better", "/ask", `{"model":"m","messages":[{"content":"12345678"}],"max_tokens":1}`, rule.Anthropic, "anthropic m false 4+1"},
		{"an image", "/v1/images/edits", strings.Repeat("x", 1<<20), rule.AutoAPI, "openai  false 1600+1000"},
		{"nothing that is known", "/v1/chat/completions", `{"question":"12345678"}`, rule.AutoAPI, "openai  false 6+1000"},
	} {
		r, ok := Parse(c.path, []byte(c.body), c.api)
		u := estimated(&r)
		if got := fmt.Sprintf("%v %s %v %d+%d", r.API, r.Model, r.Stream, u.Input, u.Output); !ok || r.Wrong != "" || got != c.want {
			t.Errorf("%s: %s, want %s; %s", c.name, got, c.want, r.Wrong)
		}
	}
}

// The model is what the upstream takes for it, and where upstreams differ, that is said.
func TestParseModel(t *testing.T) {
	const gemini, azure, chat = "/v1beta/models/pro:generateContent", "/openai/deployments/pro/chat/completions", "/v1/chat/completions"
	for _, c := range []struct {
		path, body string
		model      string
		wrong      string
	}{
		{chat, `{"model":"pro"}`, "pro", ""},
		{chat, `{"model":"p\u0072o"}`, "pro", ""},
		{chat, `{"model":"\ud83d\ude80"}`, "\U0001f680", ""},
		{chat, `{"model":"pro","model":"pro"}`, "pro", "several values of model;"},
		{chat, `{"model":"pro","model":"mini"}`, "mini", "several values of model;"},
		{chat, `{"model":"pro","model":null}`, "", "several values of model;"},
		{chat, `{"model":"pro","mod\u0065l":""}`, "", "several values of model;"},
		{chat, `{"model":"pro","Model":"mini"}`, "mini", "several values of model;"},
		{chat, `{"Model":"pro"}`, "pro", "take for model;"},
		{chat, `[{"model":"pro"},{"model":"mini"}]`, "mini", "several values of model;"},
		{chat, `{"model":["pro"]}`, "pro", "not a name;"},
		{chat, `{"model":{"model":"pro"}}`, "", "not a name;"},
		{chat, `{"model":1}`, "", "not a name;"},
		{chat, `{"model":"pro\u0000mini"}`, "pro\x00mini", "not a name;"},
		{chat, `{"model":"pro\ud800"}`, "pro\ufffd", "not a name;"},
		{chat, `{"model":null}`, "", ""},
		{chat, `{"model":"pro","metadata":{"model":"mini"}}`, "pro", ""},
		{gemini, `{"model":"mini","contents":[]}`, "pro", ""},
		{azure, `{"model":"mini"}`, "pro", ""},
		{"/openai/Deployments/pro/chat/completions", `{"model":"mini"}`, "pro", ""},
		{"/openai/deployments/PRO/CHAT/Completions", `{"model":"mini"}`, "PRO", ""},
		{"/deployments/pro/completions", `{"model":"mini"}`, "pro", ""},
		{"/openai/deployments/pro/images/edits", `{"model":"mini"}`, "pro", ""},
		{"/openai/deployments/pro", `{"model":"mini"}`, "pro", ""},
		{"/openai/deployments/org/pro/chat/completions", `{"model":"mini"}`, "org/pro", ""},
		{"/openai/deployments/org%2Fpro/chat/completions", `{"model":"mini"}`, "org/pro", ""},
		{"/openai/deployments/completions", `{"model":"mini"}`, "mini", ""},
		{"/openai/deployments/p%20ro/chat/completions", `{"model":"mini"}`, "p ro", ""},
		{"/openai/deployments/pro%00/chat/completions", `{"model":"mini"}`, "pro\x00", "not a name;"},
		{"/v1/projects/p/models/pro:rawPredict", `{"model":"mini"}`, "pro", ""},
		{"/v1beta/models/pro:70b:generateContent", `{"model":"mini"}`, "pro:70b", ""},
		{"/v1beta/models/pro:GenerateContent", `{"model":"mini"}`, "pro", ""},
		{"/v1/chat/completions:x", `{"model":"pro"}`, "pro", ""},
		{"/model/pro/converse", `{"model":"mini"}`, "pro", ""},
		{"/aws/Model/pro/Invoke", `{"model":"mini"}`, "pro", ""},
		{"/model/pro/invoke-with-response-stream", `{"model":"mini"}`, "pro", ""},
		{"/model/arn:aws:bedrock:x:1:inference-profile/pro/invoke", `{"model":"mini"}`, "arn:aws:bedrock:x:1:inference-profile/pro", ""},
		{"/model/mini/model/pro/converse-stream", `{}`, "pro", ""},
		{"/ai/model/v1/chat/completions", `{"model":"pro"}`, "pro", ""},
		{"/model/mini/v1/messages", `{"model":"pro"}`, "pro", ""},
		{"/model/mini/openai/v1/responses", `{"model":"pro"}`, "pro", ""},
		{"/model/mini/v1/invoke", `{"model":"pro"}`, "pro", ""},
		{"/model/mini", `{"model":"pro"}`, "pro", ""},
		{"/model/invoke", `{"model":"pro"}`, "pro", ""},
		{"/model//invoke", `{"model":"pro"}`, "pro", ""},
		{"/models/mini/invoke", `{"model":"pro"}`, "pro", ""},
	} {
		r, _ := Parse(c.path, []byte(c.body), rule.AutoAPI)
		if r.Model != c.model || !strings.Contains(r.Wrong, c.wrong) || c.wrong == "" && r.Wrong != "" {
			t.Errorf("%s %s: %q, %s", c.path, c.body, r.Model, r.Wrong)
		}
	}
}

// Where prices differ by model, a request with another one to fall back to has no price, nor has one whose name is cut.
func TestParseUnclear(t *testing.T) {
	long := strings.Repeat("a/", 63) + "o3-pro"
	const other, cut = "other models to fall back to", "more than 128 bytes"
	for _, c := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"model":"mini","models":["pro"]}`, other},
		{"/v1/chat/completions", `{"models":["mini","pro"],"model":"mini"}`, other},
		{"/v1/chat/completions", `{"model":"mini","models":["mini","pro","mini"]}`, other},
		{"/v1/chat/completions", `{"model":"mini","Models":["pro"]}`, other},
		{"/v1/chat/completions", `{"model":"mini","models":"pro"}`, other},
		{"/v1/chat/completions", `{"model":"mini","models":["mini"],"models":["pro"]}`, other},
		{"/v1/chat/completions", `{"model":"mini","fallbacks":[{"model":"mini"}]}`, other},
		{"/v1/chat/completions", `{"models":["pro"]}`, other},
		{"/v1/chat/completions", `{"model":"` + long[:maxKept] + `","models":["` + long + `"]}`, other},
		{"/v1/chat/completions", `{"model":"mini","models":["mini","m\u0069ni"]}`, ""},
		{"/v1/chat/completions", `{"model":"mini","models":[]}`, ""},
		{"/v1/chat/completions", `{"model":"mini","models":null,"fallbacks":null}`, ""},
		{"/v1/chat/completions", `{"model":"mini","metadata":{"models":["pro"]}}`, ""},
		{"/v1/chat/completions", `{"model":"` + long + `"}`, cut},
		{"/model/" + strings.ReplaceAll(long, "/", "_") + "/converse", `{}`, cut},
		{"/v1/chat/completions", `{"model":"` + long[:maxKept] + `"}`, ""},
		{"/model/pro/converse", `{"model":"` + long + `"}`, ""},
	} {
		r, _ := Parse(c.path, []byte(c.body), rule.AutoAPI)
		if !strings.Contains(r.Unclear, c.want) || c.want == "" && r.Unclear != "" || r.Wrong != "" {
			t.Errorf("%.40s %.80s: %q, %s", c.path, c.body, r.Unclear, r.Wrong)
		}
	}
}

// The length of an answer is bound by the fields of its method, and by no others.
func TestParseFields(t *testing.T) {
	const all = `{"max_tokens":1,"max_completion_tokens":2,"max_output_tokens":3,"n":2,"best_of":3,"generationConfig":{"max_output_tokens":5,"candidate_count":7}`
	const none = `{"generation_config":{}`
	for _, c := range []struct {
		path string
		api  rule.ModelAPI
		body string
		want int64 // with 1000 for an answer that has no bound
	}{
		{"/v1/chat/completions", rule.AutoAPI, all + `}`, 2 * 3},
		{"/v1/chat/completions", rule.AutoAPI, none + `,"max_output_tokens":1}`, 1000},
		{"/v1/chat/completions", rule.AutoAPI, none + `,"generationConfig_":{"maxOutputTokens":1}}`, 1000},
		{"/v1/chat/completions", rule.AutoAPI, none + `,"max_tokens":5,"max_completion_tokens":-1,"n":2}`, 2000},
		{"/v1/chat/completions", rule.AutoAPI, none + `,"max_tokens":5,"max_completion_tokens":0}`, 1000},
		{"/v1/chat/completions", rule.AutoAPI, none + `,"max_tokens":5,"max_completion_tokens":null}`, 5},
		{"/v1/chat/completions", rule.AutoAPI, none + `,"max_tokens":5,"n":-3}`, 5},
		{"/v1/responses", rule.AutoAPI, all + `}`, 3},
		{"/v1/responses", rule.AutoAPI, none + `,"max_tokens":1,"max_completion_tokens":1}`, 1000},
		{"/v1/messages", rule.AutoAPI, all + `}`, 1},
		{"/v1/messages", rule.AutoAPI, none + `,"max_completion_tokens":1,"max_output_tokens":1,"n":9}`, 1000},
		{"/v1beta/models/m:generateContent", rule.AutoAPI, all + `}`, 5 * 7},
		{"/v1beta/models/m:generateContent", rule.AutoAPI, none + `,"max_tokens":1,"max_output_tokens":1,"n":9}`, 1000},
		{"/v1/embeddings", rule.AutoAPI, all + `}`, 0},
		{"/ask", rule.AutoAPI, all + `,"messages":[]}`, 2 * 3},
		{"/ask", rule.AutoAPI, all + `,"input":"x"}`, 3},
		{"/ask", rule.AutoAPI, all + `,"contents":[]}`, 5 * 7},
		{"/ask", rule.AutoAPI, all + `,"messages":[],"system":"x"}`, 2 * 3},
		{"/ask", rule.AutoAPI, none + `,"messages":[],"max_tokens":9,"input":"x"}`, 9 + 1000}, // who knows
		{"/ask", rule.AutoAPI, none + `,"max_output_tokens":9}`, 1000},
		{"/ask", rule.Anthropic, all + `,"contents":[]}`, 1},
		{"/ask", rule.OpenAI, all + `,"contents":[]}`, 2 * 3},
		{"/ask", rule.Gemini, all + `}`, 5 * 7},
		{"/v1/chat/completions", rule.Anthropic, all + `,"messages":[]}`, 1},
	} {
		r, _ := Parse(c.path, []byte(c.body), c.api)
		if got := estimated(&r).Output; got != c.want || r.Wrong != "" {
			t.Errorf("%s %v %s: %d, want %d; %s", c.path, c.api, c.body, got, c.want, r.Wrong)
		}
	}
}

// Two readings of a path may ask for the same or not.
func TestSamePath(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"/v1/deployments/cheap/..%2F..%2Fchat/completions", "/v1/chat/completions", false},
		{"/v1beta/models/cheap:generateContent%2F..%2Fdear:generateContent", "/v1beta/models/dear:generateContent", false},
		{"/model/arn:aws:x%2Fy/invoke", "/model/arn:aws:x/y/invoke", true},
		{"/model/arn:aws:x%2Fy/count-tokens", "/model/arn:aws:x/y/count-tokens", true},
		{"/model/x%2Fy/count-tokens", "/model/x/y/count-tokens", false},
		{"/a/../v1/chat/completions", "/v1/chat/completions", true},
		{"/deployments/org%2Fm/chat/completions", "/deployments/org/m/chat/completions", true},
	} {
		if SamePath(c.a, c.b) != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.same)
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
		r, _ := Parse("/v1/chat/completions", []byte(body), rule.AutoAPI)
		got := ""
		if _, asks := r.AskUsage([]byte(body)); r.Wrong != "" {
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
		"/v1/batches", "/v1/messages/batches", "/v1/chat/completions;/v1/files", "/v1/files/f1", "/ask/files", "/v1/cancel", "/v1/chat/completions/v1%2Ffiles",
		"/count-tokens", "/model/count-tokens", "/model//count-tokens", "/v1/x/count-tokens", "/model/x/y/count-tokens", "/model/x/converse;/count-tokens",
		"/model/x/converse%00/count-tokens", "/model/x%3Fy/count-tokens", "/model/x/count-tokens/converse", "/model/../count-tokens",
		"/v1/chat/completions/..;/count_tokens", "/v1/chat\\count_tokens", "/v1/chat/completions//count_tokens", "/v1/./count_tokens",
	} {
		if _, ok := Parse(path, []byte(`{"messages":[]}`), rule.AutoAPI); !ok {
			t.Errorf("%s uses no tokens", path)
		}
	}
}

// What cannot use tokens is told apart.
func TestParseFree(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/models": "", "/v1/messages/count_tokens": `{"messages":[]}`,
		"/v1beta/models/gemini-2.5-flash:countTokens": `{"contents":[]}`, "/v1/responses/input_tokens": `{"input":"x"}`,
		"/model/us.anthropic.claude-3-5-sonnet-20240620-v1:0/count-tokens": `{"input":{"converse":{"messages":[]}}}`,
		"/v1/files": "--x\r\n", "/openai/v1/files": "--x\r\n", "/v1/uploads": `{"bytes":1}`, "/v1/uploads/u1/parts": "--x\r\n",
		"/v1/vector_stores": `{"name":"x"}`, "/v1/vector_stores/vs_1": `{"name":"x"}`, "/v1/vector_stores/vs_1/files": `{"file_id":"x"}`, "/v1/vector_stores/vs_1/file_batches/b/cancel": `{}`,
		"/v1/responses/r1/cancel": `{}`, "/v1/batches/b1/cancel": `{}`, "/v1/messages/batches/b1/cancel": `{}`,
		"/bedrock/model/arn:aws:bedrock:x:1:inference-profile%2Fpro%3A0/count-tokens/": `{"input":{"invokeModel":{"body":"e30="}}}`,
	} {
		if _, ok := Parse(path, []byte(body), rule.AutoAPI); ok {
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
		{`{"max_tokens":1,"max_completion_tokens":9}`, 9},
		{`{"max\u005ftokens":9}`, 9},
		{`{"max_tokens":"9"}`, 9},
		{`{"max_tokens":8.2}`, 9},
		{`{"max_tokens":9e0}`, 9},
		{`{"max_tokens":1e400}`, MaxTokens},
		{`{"max_tokens":` + strings.Repeat("9", 1000) + `}`, MaxTokens},
		{`{"max_tokens":1000000000,"n":1000000000}`, MaxTokens},
		{`{"max_tokens":0}`, 1000},
		{`{"max_tokens":-5}`, 1000},
		{`{"max_tokens":null}`, 1000},
		{`{"max_tokens":0.2}`, 1000},
		{`{"n":1e400}`, MaxTokens},
		{`{"metadata":{"max_tokens":5}}`, 1000},
	} {
		r, _ := Parse("/v1/chat/completions", []byte(c.body[:len(c.body)-1]+","+prompt+"}"), rule.AutoAPI)
		if got := estimated(&r).Output; got != c.want {
			t.Errorf("%.80s: %d, want %d", c.body, got, c.want)
		}
	}
	for _, n := range []int{4_900, 100_000} {
		deep := strings.Repeat(`{"content":[`, n)
		r, _ := Parse("/v1/chat/completions", []byte(`{"messages":`+deep+`"`+strings.Repeat("a b ", 100)+`"`+strings.Repeat("]}", n)+`,"max_tokens":7}`), rule.AutoAPI)
		if u := estimated(&r); u.Input < 100 || u.Output != 7 || (r.Wrong != "") != (n == 100_000) {
			t.Errorf("a deep body: %+v, %s", u, r.Wrong)
		}
	}
}

// What upstreams may read in different ways is wrong.
func TestParseWrong(t *testing.T) {
	const chat = "/v1/chat/completions"
	for _, c := range []struct{ path, body, says string }{
		{chat, `{"max_tokens":1,"max_tokens":9}`, "several values of max_tokens;"},
		{chat, `{"max_tokens":9,"max_tokens":null}`, "several values of max_tokens;"},
		{chat, `{"Max_Tokens":1}`, "take for max_tokens;"},
		{chat, `{"max_to\u212aens":1}`, "take for max_tokens;"},
		{chat, "{\"max_to\u212aen\u017f\":1}", "take for max_tokens;"},
		{chat, `{"max_tokens":"many"}`, "value of max_tokens that is not a number;"},
		{chat, `{"max_tokens":" 50000 "}`, "not a number;"},
		{chat, `{"max_tokens":"5_0000"}`, "not a number;"},
		{chat, `{"max_tokens":"` + strings.Repeat("0", 200) + `50000"}`, "not a number;"},
		{chat, `{"max_tokens":""}`, "not a number;"},
		{chat, `{"max_tokens":[1]}`, "not a number;"},
		{chat, `{"max_tokens":{"max_tokens":1}}`, "not a number;"},
		{chat, `{"max_tokens":true}`, "not a number;"},
		{chat, `{"n":[1],"n":2}`, "value of n that is not a number;"},
		{chat, `{"generationConfig":{"maxOutputTokens":1},"generation_config":{}}`, "several values of generationConfig;"},
		{chat, `{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":null}}`, "several values of maxOutputTokens;"},
		{chat, `{"messages":[]`, "not valid JSON"},
		{chat, `{"messages":[]}{"messages":[]}`, "not valid JSON"},
		{chat, `{"max_tokens":NaN}`, "not valid JSON"},
		{chat, "\ufeff{}", "not valid JSON"},
		{chat, "{\"x\":\"\xff\"}", "not valid JSON"},
		{chat, "{\x00\"\x00", "not valid JSON"},
		{"/ask", "\x00\x00\x00 \x00\x00\x00{", "not valid JSON"},
		{"/ask", "\xff\xfe\n\x00{\x00", "not valid JSON"},
		{"/ask", "[{]", "not valid JSON"},
		{chat, "model=m&prompt=x", "not valid JSON"},
		{"/ask", "--boundary\r\n\xff\x00", ""},
		{"/v1/audio/transcriptions", "\x00\x00\x00\x18ftyp", ""},
		{chat, `{"messages":[{"content":"x","max_tokens":1,"Max_Tokens":1,"model":1}],"Messages":[],"Stream":false,"Text":"x"}`, ""},
		{chat, `{"tools":[{"function":{"parameters":{"n":{},"N":{},"URL":{},"model":{}}}}]}`, ""},
	} {
		r, ok := Parse(c.path, []byte(c.body), rule.AutoAPI)
		if !ok || !strings.Contains(r.Wrong, c.says) || c.says == "" && r.Wrong != "" {
			t.Errorf("%s %.80q: %s, want %s", c.path, c.body, r.Wrong, c.says)
		}
	}
}

// A prompt is counted under names that some upstreams take for the known ones, too.
func TestParseFoldedPrompt(t *testing.T) {
	for _, name := range []string{"messages", "MESSAGES", "me\u017f\u017fage\u017f", `me\u017fsages`} {
		r, _ := Parse("/v1/chat/completions", []byte(`{"`+name+`":[{"content":"`+strings.Repeat("a b ", 1000)+`"}]}`), rule.AutoAPI)
		if r.Input < 1000 || r.Input > 1010 {
			t.Errorf("%s: %d", name, r.Input)
		}
	}
}

// Data that is not text costs what an image costs, text what it has. Prose is text, whatever it looks like.
func TestParseMedia(t *testing.T) {
	long := strings.Repeat("iVBORw0KGgo", 10_000)
	for _, body := range []string{`{"prompt":"%s"}`, `{"messages":["%s"]}`, `{"messages":[{"content":"%s"}]}`, `{"messages":[{"content":[{"type":"text","text":"%s"}]}]}`,
		`{"input":"%s"}`, `{"input":[{"output":"%s"}]}`, `{"instructions":"%s"}`, `{"contents":{"parts":[{"text":"%s"}]}}`, `{"system":[{"text":"%s"}]}`} {
		if r, _ := Parse("/ask", fmt.Appendf(nil, body, long), rule.AutoAPI); r.Input < int64(len(long)/bytesPerToken) {
			t.Errorf("%s: %d", body, r.Input)
		}
	}
	ask := func(url string) int64 {
		r, _ := Parse("/v1/chat/completions", []byte(`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}]}`), rule.AutoAPI)
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
		r, _ := Parse(c.path, []byte(c.body), rule.AutoAPI)
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
		r, ok := Parse(path, body, rule.AutoAPI)
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
