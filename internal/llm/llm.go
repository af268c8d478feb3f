// Package llm reads what language models are asked and what they answer: how many tokens
// a request may use, and how many it did, for the APIs of OpenAI, Anthropic and Google
// (Gemini), and for the many that copy one of them.
//
//	request, ok := llm.Parse(path, body, llm.Auto)
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

// API is the protocol that a client speaks with a model.
type API uint8

const (
	Auto API = iota // whatever path and body say
	OpenAI
	Anthropic
	Gemini
)

var apiNames = [...]string{"auto", "openai", "anthropic", "gemini"}

func (a API) String() string { return apiNames[a] }

// ParseAPI is the API of a name.
func ParseAPI(name string) (API, bool) {
	for i, n := range apiNames {
		if n == name {
			return API(i), true
		}
	}
	return 0, false
}

// APINames are the names that ParseAPI knows.
func APINames() []string { return apiNames[:] }

// MaxTokens is more than any number of tokens. What is said to be more is taken for it, so
// that no sum overflows.
const MaxTokens = 1 << 40

// bytesPerToken is what a token of text has on average.
const bytesPerToken = 4

// textTokens is how many tokens so many bytes of text may have.
func textTokens(n int64) int64 { return min((n+bytesPerToken-1)/bytesPerToken, MaxTokens) }

// Usage is what one request used.
type Usage struct {
	Input     int64 // tokens of the prompt, with those that were cached
	Cached    int64 // tokens of the prompt that were read from the vendor's cache
	Output    int64 // tokens of the answer, with those of its reasoning
	Reasoning int64 // tokens of the answer that are not shown
}

func clamp(n int64) int64 { return max(0, min(n, MaxTokens)) }
