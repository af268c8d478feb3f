package llm

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Request is what is known of a request before it is answered.
type Request struct {
	API       API
	Model     string // at most 128 bytes; "" if it is not said
	Several   string // what the body has several of, of which upstreams may take any; "" if nothing
	Stream    bool   // the answer comes as it is made
	Generates bool   // it makes text; embeddings do not
	Input     int64  // estimated tokens of the prompt
	Output    int64  // the most that the client asks for, of all copies; 0 if it does not say

	named   bool // the body has a model
	copies  int64
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
	aModel id = iota + 1
	aStream
	aLimit
	aNumber
	anOption
	anInclude
	aMark
	aPrompt
	aChat
	anInput
	aSystem
	aContents
)

var requestPlaces = func() *place {
	config := at(0,
		"maxOutputTokens", at(aLimit), "max_output_tokens", at(aLimit),
		"candidateCount", at(aNumber), "candidate_count", at(aNumber),
		"responseSchema", deep(aPrompt), "response_schema", deep(aPrompt), "responseJsonSchema", deep(aPrompt))
	return at(0,
		"model", at(aModel), "stream", at(aStream), "anthropic_version", at(aMark),
		"max_tokens", at(aLimit), "max_completion_tokens", at(aLimit), "max_output_tokens", at(aLimit),
		"n", at(aNumber), "best_of", at(aNumber),
		"stream_options", at(anOption, "include_usage", at(anInclude)),
		"generationConfig", config, "generation_config", config,
		"messages", deep(aChat), "prompt", deep(aChat), "input", deep(anInput), "system", deep(aSystem),
		"contents", deep(aContents), "content", deep(aContents), "requests", deep(aContents),
		"systemInstruction", deep(aContents), "system_instruction", deep(aContents),
		// Whatever else the model is shown.
		"instructions", deep(aPrompt), "tools", deep(aPrompt), "functions", deep(aPrompt),
		"response_format", deep(aPrompt), "text", deep(aPrompt), "output_config", deep(aPrompt))
}()

// deep is a place with all that is below it.
func deep(what id) *place { return &place{id: what, deep: true} }

// mediaTokens is what an image costs at most, and what is assumed for data that is not text.
const mediaTokens = 1600

// Parse reads a request. It is false if the request cannot use tokens: it has no body, or
// only counts. A body that cannot be read is taken for a prompt, so it is never free.
func Parse(path string, body []byte, api API) (Request, bool) {
	r := Request{API: api, Generates: true, copies: 1}
	path = strings.TrimRight(path, "/")
	verb := path[strings.LastIndexAny(path, "/:")+1:]
	if len(body) == 0 || onlyCounts(path) {
		return r, false
	}
	reading := readings.Get().(*reading)
	defer reading.free()
	reading.Request = r
	reading.read(body)
	reading.place(path, verb)
	return reading.Request, true
}

// onlyCounts reports whether a path is one by which a vendor counts tokens and uses none. Servers
// read some paths in different ways, such as those with parameters; these are not.
func onlyCounts(path string) bool {
	counts := strings.HasSuffix(path, ":countTokens") || strings.HasSuffix(path, "/messages/count_tokens") || strings.HasSuffix(path, "/responses/input_tokens")
	return counts && !strings.ContainsAny(path, `;%\`) && !strings.Contains(path, "//") && !strings.Contains(path, "/.")
}

// reading is a request that is being read. Its memory is used again for others.
type reading struct {
	Request
	scan scanner
	seen uint32 // what there is, as bits

	text, media, limit int64
}

var readings = sync.Pool{New: func() any {
	r := new(reading)
	r.scan.root, r.scan.visit = requestPlaces, r.see
	return r
}}

func (r *reading) free() {
	r.Request, r.seen, r.text, r.media, r.limit = Request{}, 0, 0, 0, 0
	r.scan.reset()
	readings.Put(r)
}

func (r *reading) has(what id) bool { return r.seen&(1<<what) != 0 }

// see is told what the body says. Where a name is given twice, upstreams differ in what they
// read, so what costs more counts.
func (r *reading) see(v *value) {
	r.seen |= 1 << v.id
	switch v.id {
	case aModel:
		if v.kind == '"' {
			name := strings.ToValidUTF8(string(v.text), "")
			if r.named && name != r.Model {
				r.Several = "model"
			}
			r.Model, r.named = name, true
		}
	case aStream:
		r.Stream = r.Stream || v.isTrue()
	case aLimit:
		r.limit = max(r.limit, v.number())
	case aNumber:
		r.copies = max(r.copies, v.number())
	case anOption:
		if v.kind != 'k' {
			r.severalOptions(r.options.kind != 0)
			r.options, r.include, r.asked = v.span(), span{}, false
		}
	case anInclude:
		r.severalOptions(r.include.kind != 0)
		r.include, r.asked = v.span(), v.kind == 't'
	case aMark:
	default:
		switch {
		case v.kind == '0':
			r.text += bytesPerToken // a prompt can be a list of tokens
		case v.kind != '"' && v.kind != 'k':
		case v.size > mediaTokens*bytesPerToken && encoded(v.text):
			r.media += mediaTokens
		default:
			r.text += v.size
		}
	}
}

func (r *reading) severalOptions(several bool) {
	if several && r.Several == "" {
		r.Several = "stream_options"
	}
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

func (r *reading) read(body []byte) {
	r.scan.feed(body)
	r.scan.finish()
	text := r.text
	if text+r.media == 0 {
		text = int64(len(body))
		if body = bytes.TrimSpace(body); len(body) > 0 && body[0] != '{' {
			text = min(text, mediaTokens*bytesPerToken) // a file
		}
	}
	r.Input = max(1, min(r.media+textTokens(text), MaxTokens))
	r.Output = times(r.limit, r.copies)
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

// times is a product, or MaxTokens.
func times(a, b int64) int64 {
	if b > 0 && a > MaxTokens/b {
		return MaxTokens
	}
	return a * b
}

// place finds out which API it is, and what of it. The path says so if it is one of the
// vendors'; otherwise the body does.
func (r *reading) place(path, verb string) {
	model, method, isMethod := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	api, byPath := OpenAI, ""
	switch {
	case isMethod && strings.HasSuffix(method, "ontent") || isMethod && strings.HasSuffix(method, "ontents"):
		api, byPath = Gemini, model
		r.Stream = r.Stream || strings.HasPrefix(method, "stream")
		r.Generates = !strings.Contains(strings.ToLower(method), "embed")
	case isMethod && strings.HasSuffix(strings.ToLower(method), "rawpredict"): // Claude by Vertex AI
		api, byPath = Anthropic, model
		r.Stream = r.Stream || strings.HasPrefix(method, "stream")
	case verb == "completions":
		r.chat = true
	case verb == "responses":
	case verb == "embeddings":
		r.Generates = false
	case verb == "messages", r.has(aMark):
		api = Anthropic
	case r.has(aContents):
		api = Gemini
	case r.has(aSystem):
		api = Anthropic
	default:
		r.chat = r.has(aChat)
	}
	if r.API == Auto {
		r.API = api
	}
	r.chat = r.chat && r.API == OpenAI
	if before, after, found := strings.Cut(path, "/deployments/"); byPath == "" && found && before != "" { // Azure
		byPath, _, _ = strings.Cut(after, "/")
	}
	switch { // Where the path has the model, upstreams do not look for it in the body.
	case byPath != "":
		if r.Model = byPath[:min(len(byPath), maxKept)]; r.Several == "model" {
			r.Several = ""
		}
	case r.Model == "" && isMethod:
		r.Model = model[:min(len(model), maxKept)]
	}
	r.Model = strings.ToValidUTF8(r.Model, "")
}

// Answers is how many answers the client asks for without a bound on their length.
func (r *Request) Answers() int64 {
	if !r.Generates || r.Output > 0 {
		return 0
	}
	return r.copies
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
