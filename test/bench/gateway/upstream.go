package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// question is what all callers ask.
type question struct {
	name string
	text []byte
	body int // bytes of the answer
}

func things() []question {
	const head = " HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: bench/1\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n"
	return []question{
		{"GET, short answer", []byte("GET /api/things/42?fields=all" + head + "\r\n"), len(short)},
		{"GET, 64 KiB", []byte("GET /long" + head + "\r\n"), len(long)},
		{"POST, 1 KiB", []byte("POST /api/things" + head + "Content-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("x", 1024)), len(short)},
	}
}

// serveThings is the upstream: a short answer, or a long one.
func serveThings(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	if r.URL.Path == "/long" {
		_, _ = w.Write(long)
		return
	}
	_, _ = w.Write(short)
}

var (
	short = []byte(`{"id":1234567,"name":"a short answer, as most of them are","tags":["a","b","c"]}` + "\n")
	long  = []byte(strings.Repeat("0123456789abcdef", 4096))
)

// events is how many of them a stream has before its usage.
const events = 50

var (
	complete = []byte(`{"id":"c1","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"` +
		strings.Repeat("word ", 200) + `"}}],"usage":{"prompt_tokens":256,"completion_tokens":200,"total_tokens":456}}` + "\n")
	event = []byte(`data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n")
	usage = []byte(`data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-4o","choices":[],"usage":{"prompt_tokens":256,"completion_tokens":50,"total_tokens":306}}` + "\n\n")
	done  = []byte("data: [DONE]\n\n")
)

// streamed is the length of a stream whose client did not ask for its usage.
var streamed = events*len(event) + len(done)

// serveModel is an upstream that speaks as OpenAI's does: an answer, or a stream of events
// that leave one by one, with the usage at the end for those who ask for it.
func serveModel(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case !bytes.Contains(body, []byte(`"stream":true`)):
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(complete)
		return
	}
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	flush := w.(http.Flusher)
	for range events {
		_, _ = w.Write(event)
		flush.Flush()
	}
	if bytes.Contains(body, []byte(`"include_usage"`)) {
		_, _ = w.Write(usage)
	}
	_, _ = w.Write(done)
}

func chats() []question {
	ask := func(options string) []byte {
		body := `{"model":"gpt-4o","max_completion_tokens":400,` + options + `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}]}`
		return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer sk-1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	return []question{
		{"chat, answer of 1 KiB", ask(""), len(complete)},
		{fmt.Sprintf("chat, stream of %d events", events), ask(`"stream":true,`), streamed},
	}
}
