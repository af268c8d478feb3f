package llm

import (
	"bytes"
	"strings"
	"testing"
)

// alikes are streams whose events begin alike, up to a text, or nearly.
var alikes = []string{
	`data: {"id":"c","choices":[{"index":0,"delta":{"content":"one"}}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"and two"}}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"\u00e9 \"3\"","refusal":"no"}}]}

data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}

`,
	// What is counted before a text counts each time.
	`data: {"choices":[{"finish_reason":"stop","delta":{"refusal":"twelve bytes","content":"four"}}]}

data: {"choices":[{"finish_reason":"stop","delta":{"refusal":"twelve bytes","content":"five5"}}]}

data: {"choices":[{"finish_reason":"stop","delta":{"refusal":"twelve bytes","content":"six666"}}]}

`,
	`data: {"usageMetadata":{"candidatesTokenCount":5},"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"a"}]}}]}

data: {"usageMetadata":{"candidatesTokenCount":5},"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"bb"}]}}]}

`,
	// Of an event of several lines, only the first begins it.
	`data: {"delta":{"text":"a"}}
data: {"delta":{"text":"b"}}

data: {"delta":{"text":"c"
data: {"delta":{"text":"d"

data: {"delta":{"text":"e`,
	strings.Repeat(`data: {"choices":[],"delta":{"text":"with usage"},"usage":{}}`+"\n\n", 3),
	strings.Repeat(`data: {"type":"content_block_delta","index":3,"delta":{"text":"a"}}`+"\n\n", 3),
	strings.Repeat(`data: {"choices":[[[[[[[[[{"delta":{"content":"deep"}}]]]]]]]],{"delta":{"content":"not so deep"}}]}`+"\n\n", 3),
	strings.Repeat(`data: {"choices":[[[[[[[[[{"delta":{"content":"deep"}}]]]]]]]]]}`+"\n\n", 3),
	strings.Repeat(`data: {"x":"`+strings.Repeat("y", maxAlike)+`","delta":{"text":"late"}}`+"\n\n", 3),
}

// What is read again and what is not counts the same. Byte by byte, all is read.
func TestAlike(t *testing.T) {
	for _, body := range alikes {
		var read [2]struct {
			tally
			origin
		}
		var got [2]string
		for i, part := range []int{1, len(body)} {
			w := NewWatch(request)
			w.Strip()
			w.Over = func(Usage) bool { return false }
			got[i] = watched(w, header("x.sse"), 200, body, part)
			read[i].tally, read[i].origin = w.tally, w.origin
			w.Free()
		}
		if read[0] != read[1] || got[0] != got[1] {
			t.Errorf("%s\nbyte by byte: %+v, %q\nat once: %+v, %q", body, read[0], got[0], read[1], got[1])
		}
	}
	w := NewWatch(request)
	w.Begin(200, header("x.sse"))
	for event := range strings.SplitAfterSeq(alikes[0], "\n\n") {
		w.Pass([]byte(event))
	}
	if got := string(w.alike.text); got != ` {"id":"c","choices":[{"index":0,"delta":{"content":"` {
		t.Errorf("events begin with %q", got)
	}
}

// Eight bytes at a time find what one at a time does.
func TestPlain(t *testing.T) {
	for n := range 40 {
		for at := range n + 1 {
			for _, other := range []string{"x", "!", "#", "[", "]", "\x80", "\xa2", "\xdc", "\xff", "\x00", "\x01"} {
				p := []byte(strings.Repeat(other, n))
				for _, c := range []byte(`"\`) {
					q := bytes.Clone(p)
					if at < n {
						q[at] = c
					}
					if got := plain(q); got != at {
						t.Fatalf("%q: %d, want %d", q, got, at)
					}
				}
			}
		}
	}
}
