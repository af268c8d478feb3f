package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/rule"
)

// Request is what is known of a request before it is answered.
type Request struct {
	API         rule.ModelAPI
	rule.Prompt        // the model has at most 128 bytes; "" if it is not said
	Wrong       string // a sentence if upstreams may take it for another request, at another price; else ""
	Stream      bool   // the answer comes as it is made
	Generates   bool   // it makes text; embeddings do not

	chat    bool // the API reports the usage of a stream only if asked
	asked   bool // the client asks
	options span
	include span
}

// span is where a value is in the body; zero if it is not there.
type span struct {
	kind       byte
	begin, end int64
}

func (v *value) span() span { return span{v.kind, v.begin, v.end} }

// What is of interest in a request. Prompts come last.
const (
	aModel    id = iota + 1
	aFallback    // another model, for when that is not available; of OpenRouter and LiteLLM
	aStream
	maxTokens // bounds on the length of an answer
	maxCompletionTokens
	maxOutputTokens
	maxOfConfig
	maxOfInference
	maxOfVendor // those of InvokeModel that no other API has
	aNumber     // how many answers
	aBestOf
	aCandidateCount
	aConfig
	anInference
	anOption
	anInclude
	aMark
	aCache // parts of it are to be cached
	aServiceTier
	aPrompt // anything that the model is shown
	someProse
	aChat
	anInput
	aSystem
	aContents
)

// fields are names for people.
var fields = [...]string{
	aModel: "model", maxTokens: "max_tokens", maxCompletionTokens: "max_completion_tokens", maxOutputTokens: "max_output_tokens",
	maxOfConfig: "maxOutputTokens", aNumber: "n", aBestOf: "best_of", aCandidateCount: "candidateCount",
	maxOfInference: "maxTokens", aConfig: "generationConfig", anInference: "inferenceConfig", anOption: "stream_options", anInclude: "include_usage", aServiceTier: "service_tier",
}

var requestNodes = func() *node {
	shown := deep(aPrompt)
	prose := func(what id) *node { return &node{id: what, rest: shown, kids: shown.kids} }
	text := prose(someProse)
	for _, name := range []string{"text", "content", "arguments", "output", "thinking", "description"} {
		shown.put(name, text)
	}
	shown.put("cache_control", at(aCache))
	shown.put("cachePoint", at(aCache))
	text.kids = shown.kids
	limit, count, length, other := once(maxOfConfig), once(aCandidateCount), once(maxTokens), at(maxOfVendor)
	config := once(aConfig,
		"maxOutputTokens", limit, "max_output_tokens", limit, "candidateCount", count, "candidate_count", count,
		"responseSchema", shown, "response_schema", shown, "responseJsonSchema", shown)
	return at(0,
		"model", once(aModel), "models", at(aFallback), "fallbacks", at(aFallback), "stream", at(aStream), "anthropic_version", at(aMark), "cache_control", at(aCache),
		"max_tokens", once(maxTokens), "max_completion_tokens", once(maxCompletionTokens), "max_output_tokens", once(maxOutputTokens),
		"service_tier", once(aServiceTier), "n", once(aNumber), "best_of", once(aBestOf),
		"stream_options", once(anOption, "include_usage", once(anInclude)),
		"generationConfig", config, "generation_config", config,
		"inferenceConfig", once(anInference, "maxTokens", once(maxOfInference), "max_new_tokens", other), "serviceTier", at(0, "type", once(aServiceTier)),
		"additionalModelRequestFields", at(0, "max_tokens", length, "max_gen_len", length, "max_new_tokens", length, "max_tokens_to_sample", length,
			"inferenceConfig", at(0, "maxTokens", length, "max_new_tokens", length)),
		"max_gen_len", other, "max_tokens_to_sample", other, "max_new_tokens", other, "maxTokens", other, "textGenerationConfig", at(0, "maxTokenCount", other),
		"messages", prose(aChat), "prompt", prose(aChat), "input", prose(anInput), "system", prose(aSystem),
		"contents", prose(aContents), "content", prose(aContents), "requests", prose(aContents),
		"systemInstruction", prose(aContents), "system_instruction", prose(aContents),
		// Whatever else the model is shown.
		"instructions", text, "tools", text, "functions", text, "toolConfig", text,
		"response_format", text, "text", text, "output_config", text)
}()

// mediaTokens is what an image costs at most, and what is assumed for data that is not text.
const mediaTokens = 1600

// Parse reads a request. It is false if the request cannot use tokens: it has no body, or
// only counts, or keeps files. A body that cannot be read is taken for a prompt, so it is never free.
func Parse(path string, body []byte, api rule.ModelAPI) (Request, bool) {
	t := locate(path)
	r := Request{API: api, Generates: !t.embeds}
	if api == rule.AutoAPI {
		r.API = t.api
	}
	if len(body) == 0 || t.free {
		return r, false
	}
	reading := readings.Get().(*reading)
	defer reading.free()
	reading.Request = r
	reading.readBody(body, &t)
	reading.resolve(&t, api)
	return reading.Request, true
}

// reading is a request that is being read. Its memory is used again for others.
type reading struct {
	Request
	scan scanner
	seen uint32 // what there is, as bits

	text, media int64
	model       span
	fallback    string                     // "" if there is none
	fallbacks   bool                       // there are several
	numbers     [aCandidateCount + 1]int64 // of limits and counts; -1 if a value is no bound
}

var readings = sync.Pool{New: func() any {
	r := new(reading)
	r.scan.root, r.scan.visit = requestNodes, r.see
	return r
}}

func (r *reading) free() {
	r.Request, r.seen, r.text, r.media, r.model, r.numbers = Request{}, 0, 0, 0, span{}, [len(r.numbers)]int64{}
	r.fallback, r.fallbacks = "", false
	r.scan.reset()
	readings.Put(r)
}

func (r *reading) has(what id) bool { return r.seen&(1<<what) != 0 }

// wrong takes note of the first of what is wrong.
func (r *reading) wrong(sentence string) {
	if r.Wrong == "" {
		r.Wrong = sentence
	}
}

// see is told what the body says.
func (r *reading) see(v *value) {
	before := r.has(v.id)
	r.seen |= 1 << v.id
	switch v.id {
	case aModel:
		if v.kind != '"' && v.kind != 'n' {
			r.wrong("The request has a model that is not a name; correct it.")
		}
		r.several(before, v.id)
		r.model = v.span()
	case aFallback:
		if name := string(v.text); v.kind != '[' && v.kind != 'n' {
			r.fallbacks = r.fallbacks || v.size > maxKept || r.fallback != "" && name != r.fallback
			r.fallback = name
		}
	case aStream:
		r.Stream = r.Stream || v.isTrue()
	case maxOfVendor:
		n, plain := v.count()
		switch known := &r.numbers[v.id]; {
		case v.kind == 'k', v.kind == 'n', *known < 0:
		case !plain, n == 0:
			*known = -1
		default:
			*known = max(*known, n)
		}
	case maxTokens, maxCompletionTokens, maxOutputTokens, maxOfConfig, maxOfInference, aNumber, aBestOf, aCandidateCount:
		n, plain := v.count()
		if v.kind != 'n' && !plain {
			r.wrong("The body of the request has a value of " + fields[v.id] + " that is not a number; correct it.")
		}
		r.several(before, v.id)
		if r.numbers[v.id] = n; n == 0 && v.kind != 'n' {
			r.numbers[v.id] = -1
		}
	case anOption:
		if v.kind != 'k' {
			r.several(r.options.kind != 0, v.id)
			r.options, r.include, r.asked = v.span(), span{}, false
		}
	case anInclude:
		r.several(r.include.kind != 0, v.id)
		r.include, r.asked = v.span(), v.kind == 't'
	case aServiceTier:
		r.several(before, v.id)
		r.Tier = rule.ParseServiceTier(string(v.text))
	case aCache:
		r.Caches = r.Caches || v.kind == '{'
	case aConfig, anInference, aMark:
	default:
		switch {
		case v.kind == '0':
			r.text += bytesPerToken // a prompt can be a list of tokens
		case v.kind != '"' && v.kind != 'k':
		case v.id == aPrompt && v.size > mediaTokens*bytesPerToken && encoded(v.text):
			r.media += mediaTokens
		default:
			r.text += v.size
		}
	}
}

// several is for a value of which upstreams may take any.
func (r *reading) several(several bool, what id) {
	if several {
		r.wrong("The body of the request has several values of " + fields[what] + "; send one.")
	}
}

// count is a number, which some upstreams take a text for, and not only if it is plain.
func (v *value) count() (n int64, plain bool) {
	switch v.kind {
	case '"':
		n, plain = digits(v.text)
		return n, plain && v.size > 0
	case '0':
		return v.number(), true
	}
	return 0, false
}

// isTrue reports whether some upstream takes the value for true.
func (v *value) isTrue() bool {
	switch v.kind {
	case 't':
		return true
	case '0':
		return v.number() > 0
	case '"':
		switch strings.ToLower(string(v.text)) {
		case "true", "t", "yes", "y", "on", "1":
			return true
		}
	}
	return false
}

func (r *reading) readBody(body []byte, t *target) {
	if isObject := isJSON(body); isObject && !(utf8.Valid(body) && json.Valid(body)) || !isObject && t.known {
		r.wrong("The body of the request is not valid JSON in UTF-8.")
	}
	r.scan.feed(body)
	r.scan.finish()
	if r.several(r.scan.twice != 0, r.scan.twice); r.scan.alike != 0 {
		r.wrong("The body of the request has a field that some servers take for " + fields[r.scan.alike] + "; write it exactly so.")
	}
	if r.model.kind == '"' {
		_ = json.Unmarshal(body[r.model.begin:r.model.end], &r.Model) // what is no JSON is wrong already
		r.Model = r.name(r.Model)
	}
	text := r.text
	if text+r.media == 0 {
		text = int64(len(body))
		if body = bytes.TrimSpace(body); len(body) > 0 && body[0] != '{' {
			text = min(text, mediaTokens*bytesPerToken) // a file
		}
	}
	r.Input = max(1, min(r.media+textTokens(text), MaxTokens))
}

// isJSON reports whether some upstream may take a body for an object in JSON, or a list of them. Python
// reads it in any encoding, whatever its type is said to be.
func isJSON(body []byte) bool {
	for _, c := range body {
		switch c {
		case ' ', '\t', '\r', '\n', 0, 0xef, 0xbb, 0xbf, 0xfe, 0xff: // parts of wide blanks, and of byte order marks
		default:
			return c == '{' || c == '['
		}
	}
	return false
}

// name is that of a model, which must be the same for everybody: some programs end a text at its first zero,
// and half of a surrogate pair is different things to different ones.
func (r *reading) name(name string) string {
	if strings.ContainsFunc(name, func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }) {
		r.wrong("The request has a model that is not a name; correct it.")
	}
	if r.Unclear = ""; len(name) > maxKept {
		r.Unclear = "The name of the model has more than 128 bytes, so its price is not known; write a shorter one."
	}
	return strings.Clone(strings.ToValidUTF8(name[:min(len(name), maxKept)], "")) // a long one does not stay in memory
}

// encoded reports whether a long string begins like base64 or a data URL: text of that
// length has blanks, or letters beyond ASCII.
func encoded(begin []byte) bool {
	for _, c := range begin {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// resolve finds out which API it is, and what of it. The path says so if it is one of the
// vendors'; otherwise the body does.
func (r *reading) resolve(t *target, api rule.ModelAPI) {
	r.Stream = r.Stream || t.stream
	r.chat = t.known && t.method == askChat && !t.embeds
	if !t.known {
		guess := rule.OpenAI
		switch {
		case r.has(aMark):
			guess = rule.Anthropic
		case r.has(aContents):
			guess = rule.Gemini
		case r.has(aSystem):
			guess = rule.Anthropic
		default:
			r.chat = r.has(aChat)
		}
		if api == rule.AutoAPI {
			r.API = guess
		}
	}
	r.chat = r.chat && r.API == rule.OpenAI
	if r.Generates {
		r.bound(t, api)
	}
	switch {
	case t.model != "":
		r.Model = r.name(t.model)
	case r.Model == "":
		r.Model = r.name(t.other)
	}
	if r.fallbacks || r.fallback != "" && r.fallback != r.Model {
		r.Unclear = "The request names other models to fall back to, so its price is not known; name one model."
	}
}

// AskUsage returns the body with a question for the usage of the stream, and whether there
// has to be one: OpenAI's chat completions report it only to those who ask. The event with
// the answer is then removed by Watch. It changes the body in its place, if there is room.
func (r *Request) AskUsage(body []byte) ([]byte, bool) {
	if !r.chat || !r.Stream || r.asked {
		return body, false
	}
	const include, options = `"include_usage":true`, `"stream_options":{"include_usage":true}`
	switch o := r.options; {
	case r.include.kind != 0 && r.include.kind != '{' && r.include.kind != '[':
		return splice(body, r.include.begin, r.include.end, "true"), true
	case o.kind == '{':
		return splice(body, o.end, o.end, include+comma(body[o.end:])), true
	case o.kind == 'n':
		return splice(body, o.begin, o.end, "{"+include+"}"), true
	case o.kind != 0:
		return body, false // it is wrong, and the upstream says so
	}
	brace := int64(bytes.IndexByte(body, '{'))
	if brace < 0 {
		return body, false
	}
	return splice(body, brace+1, brace+1, options+comma(body[brace+1:])), true
}

// comma is what stands between a first field and the rest of an object.
func comma(rest []byte) string {
	if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) > 0 && rest[0] == '}' {
		return ""
	}
	return ","
}

// splice puts another text from begin to end of the body.
func splice(body []byte, begin, end int64, text string) []byte {
	return slices.Replace(body, int(begin), int(end), []byte(text)...)
}
