// Package llm reads what language models are asked and what they answer: how many tokens
// a request may use, and how many it did, for the APIs of OpenAI, Anthropic, Google
// (Gemini) and Amazon (Bedrock), and for the many that copy one of them.
//
//	request, ok := llm.Parse(path, body, rule.AutoAPI)
//	watch := llm.NewWatch(request)
//	watch.Begin(status, header)
//	for … { client.Write(watch.Pass(chunk)) }
//	client.Write(watch.End())
//	used, known := watch.Used()
//
// A response passes at once: nothing is buffered but, where one event may have to be
// removed, the event that is under way. Whatever a client or an upstream sends, memory is
// bounded by a constant, and the time by the number of bytes.
package llm

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// MaxTokens is more than any number of tokens. What is said to be more is taken for it, so
// that no sum overflows.
const MaxTokens = 1 << 40

// bytesPerToken is what a token of text has on average.
const bytesPerToken = 4

// textTokens is how many tokens so many bytes of text may have.
func textTokens(n int64) int64 { return min((n+bytesPerToken-1)/bytesPerToken, MaxTokens) }

// Usage is what one request used.
type Usage = rule.Usage

func clamp(n int64) int64 { return max(0, min(n, MaxTokens)) }

// times is a product, or MaxTokens.
func times(a, b int64) int64 {
	if b > 0 && a > MaxTokens/b {
		return MaxTokens
	}
	return a * b
}

// target is what the path of a request says of it.
type target struct {
	known  bool // it is a path of a vendor
	api    rule.ModelAPI
	method method
	model  string // of the path, where upstreams do not look for it in the body
	other  string // a model, if the body has none
	stream bool
	embeds bool
	free   bool // it uses no tokens
}

// method is one of an API, by the fields that bound its answers.
type method uint8

const (
	askChat method = iota
	askResponse
	askMessage
	askContent
	askConverse
	askInvoke // whatever the vendor of the model understands
)

// methods have the API of each, the fields that bound the length of an answer, and those with the number of
// answers. Of several fields, the largest counts. Others are not for this method, so a client that sends
// them has no bound.
var methods = [...]struct {
	api             rule.ModelAPI
	lengths, counts []id
	marks           []id // what bodies for it have
}{
	askChat:     {rule.OpenAI, []id{maxTokens, maxCompletionTokens}, []id{aNumber, aBestOf}, []id{aChat}},
	askResponse: {rule.OpenAI, []id{maxOutputTokens}, nil, []id{anInput}},
	askMessage:  {rule.Anthropic, []id{maxTokens}, nil, []id{aSystem, aMark}},
	askContent:  {rule.Gemini, []id{maxOfConfig}, []id{aCandidateCount}, []id{aContents}},
	askConverse: {rule.Bedrock, []id{maxOfInference, maxTokens}, nil, nil},
	askInvoke: {rule.Bedrock, []id{maxTokens, maxCompletionTokens, maxOutputTokens, maxOfConfig, maxOfInference, maxOfVendor},
		[]id{aNumber, aBestOf, aCandidateCount}, nil},
}

// locate reads a path. Words in it are found in any case, because some servers do so.
func locate(path string) (t target) {
	path = strings.TrimRight(path, "/")
	lower := strings.ToLower(path)
	if len(lower) != len(path) {
		lower = path // it has letters that no path has
	}
	begin := strings.LastIndexByte(path, '/') + 1
	colon := max(begin, strings.LastIndexByte(path, ':'))
	name, verb := path[begin:colon], strings.TrimPrefix(lower[colon:], ":")
	isMethod := colon > begin
	t.known = true
	switch {
	case isMethod && (strings.HasSuffix(verb, "content") || strings.HasSuffix(verb, "contents")):
		t.api, t.method, t.model, t.embeds = rule.Gemini, askContent, name, strings.Contains(verb, "embed")
		t.stream = strings.HasPrefix(verb, "stream")
	case isMethod && strings.HasSuffix(verb, "rawpredict"): // Claude by Vertex AI
		t.api, t.method, t.model = rule.Anthropic, askMessage, name
		t.stream = strings.HasPrefix(verb, "stream")
	case verb == "completions":
		t.api, t.method = rule.OpenAI, askChat
	case verb == "responses":
		t.api, t.method = rule.OpenAI, askResponse
	case verb == "embeddings":
		t.api, t.embeds = rule.OpenAI, true
	case verb == "messages":
		t.api, t.method = rule.Anthropic, askMessage
	case verb == "converse", verb == "converse-stream":
		t.api, t.method, t.stream = rule.Bedrock, askConverse, verb != "converse"
	default:
		t.known, t.free = false, isFree(path)
		if isMethod {
			t.other = name
		}
	}
	if _, after, found := strings.Cut(lower, "/deployments/"); found && t.model == "" { // Azure
		begin, end := len(path)-len(after), len(path)
		if t.known { // its name may have slashes
			end = begin + len(strings.TrimSuffix(after[:max(0, strings.LastIndexByte(after, '/'))], "/chat"))
		} else if i := strings.IndexByte(after, '/'); i >= 0 {
			end = begin + i
		}
		t.model = path[begin:end]
	}
	if model := modelOfBedrock(path, lower, begin); model != "" && t.model == "" {
		switch t.model = model; {
		case lower[begin:] == "count-tokens":
			t.free = isPlain(partsOfARN.Replace(path))
		case !t.known:
			t.method = askInvoke
		}
	}
	if plain, err := url.PathUnescape(t.model); err == nil {
		t.model = plain
	}
	return t
}

// modelOfBedrock returns the model of a path that ends in /model/{model}/ and an action of Bedrock, or "". Only ARNs have slashes, which
// are escaped, but not for all servers.
func modelOfBedrock(path, lower string, begin int) string {
	switch lower[begin:] {
	case "converse", "converse-stream", "invoke", "invoke-with-response-stream", "count-tokens":
		const before = "/model/"
		if i := strings.LastIndex(lower[:begin], before); i >= 0 && i+len(before) < begin {
			model := path[i+len(before) : begin-1]
			if !strings.Contains(model, "/") || strings.HasPrefix(model, "arn:") {
				return model
			}
		}
	}
	return ""
}

var partsOfARN = strings.NewReplacer("%2F", "", "%3A", "")

// freePath is that of a request by which a vendor counts tokens, keeps files or ends something. To create a batch is not free: its requests
// may be in the body, or in a file that nobody has read.
var freePath = regexp.MustCompile(`:countTokens$|/messages/count_tokens$|/responses/input_tokens$|` +
	`/v1/(files|uploads(/[^/]+/\w+)?|vector_stores(/[^/]+(/\w+){0,3})?|(responses|batches|messages/batches)/[^/]+/cancel)$`)

// isFree reports whether a path is one that uses no tokens.
func isFree(path string) bool { return isPlain(path) && freePath.MatchString(path) }

// isPlain reports whether all servers read a path in the same way. Some do so in different ways if it has parameters, for example.
func isPlain(path string) bool {
	return !strings.ContainsAny(path, `;%\`) && !strings.Contains(path, "//") && !strings.Contains(path, "/.")
}

// SamePath reports whether two paths ask for the same of the same model.
func SamePath(a, b string) bool { return locate(a) == locate(b) }

// bound finds how many tokens the answers may have. Where the path does not tell the method, all count
// that the body may be for.
func (r *reading) bound(t *target, api rule.ModelAPI) {
	if t.method == askInvoke {
		r.boundBy(askInvoke)
		return
	}
	found := false
	for m := range methods {
		mine := method(m) == t.method
		if !t.known || api != rule.AutoAPI && api != t.api {
			mine = (api == rule.AutoAPI || api == methods[m].api) && slices.ContainsFunc(methods[m].marks, r.has)
		}
		if mine {
			found = true
			r.boundBy(method(m))
		}
	}
	if !found {
		r.boundBy([...]method{rule.AutoAPI: askChat, rule.OpenAI: askChat, rule.Anthropic: askMessage, rule.Gemini: askContent, rule.Bedrock: askConverse}[api])
	}
}

// boundBy takes the fields of a method into account.
func (r *reading) boundBy(m method) {
	length, copies := int64(0), int64(1)
	for _, field := range methods[m].lengths {
		if n := r.numbers[field]; n < 0 || length < 0 {
			length = -1 // to some upstreams, 0 and -1 are no bound
		} else {
			length = max(length, n)
		}
	}
	for _, field := range methods[m].counts {
		copies = max(copies, r.numbers[field])
	}
	if length > 0 {
		r.MaxOutput, r.Bounded = max(r.MaxOutput, times(length, copies)), max(r.Bounded, copies)
	} else {
		r.Answers = max(r.Answers, copies)
	}
}
