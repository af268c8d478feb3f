package llm

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// A watch that is used again knows nothing of the response before.
func TestClear(t *testing.T) {
	fresh := func() *Watch { return watches.New().(*Watch) }
	for name, c := range map[string]struct{ kind, text string }{
		"a document":            {"application/json", `{"id":"c1","choices":[{"index":1,"message":{"content":"some text"}}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`},
		"half of one":           {"application/json", `{"choices":[{"message":{"content":"some te`},
		"half of an escape":     {"application/json", `{"choices":[{"message":{"content":"\u00`},
		"a stream that was cut": {"text/event-stream", strings.Repeat(`data: {"id":"c1","model":"m","choices":[{"index":1,"delta":{"content":"some text"}}]}`+"\n\n", 3)},
		"half of an event":      {"text/event-stream", `data: {"type":"content_block_delta","index":3,"delta":{"text":"some te`},
		"what is held":          {"text/event-stream", `data: {"choices":[],"usage":{"prompt_tokens":7`},
	} {
		w := fresh()
		w.request = Request{Prompt: rule.Prompt{Model: "m"}, Stream: true}
		w.Strip()
		w.Over = func(u Usage) bool { return u.Output > 3 }
		w.Begin(http.StatusOK, http.Header{"Content-Type": {c.kind}})
		w.Pass([]byte(c.text))
		w.clear()
		// What is written before it is read.
		s := &w.scan
		s.open, s.kept, s.v, s.hex, s.digit, s.visit = [maxNested]frame{}, [maxKept]byte{}, value{text: s.v.text}, 0, 0, nil
		a := &w.alike
		a.event, a.open, a.depth = event{}, [maxAlikeOpen]frame{}, 0
		if len(w.held)+len(w.out)+len(a.text) > 0 {
			t.Errorf("%s: something is held, or known", name)
		}
		w.held, w.out, a.text = nil, nil, nil
		want := fresh()
		want.scan.visit = nil
		if !reflect.DeepEqual(w, want) {
			t.Errorf("%s: %+v", name, w)
		}
	}
}
