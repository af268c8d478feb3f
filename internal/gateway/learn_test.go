package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// settlements tells when a request is settled.
type settlements chan struct{}

func (s settlements) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

func (s settlements) ObserveHold(e engine.HoldEvent) {
	if e.Kind == engine.SettledHold {
		s <- struct{}{}
	}
}

// Only an answer that the model has ended tells how long answers are: not one whose client leaves, nor one that the
// upstream breaks off, with or without an error, nor one of several. One whose client leaves after its end counts.
func TestAnswersThatTeach(t *testing.T) {
	const text = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"abcd"},"finish_reason":null}]}` + "\n\n"
	const end = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":100,"total_tokens":109}}` + "\n\n"
	const half = `{"choices":[{"message":{"content":"abcd`
	const longest = 10_000
	for kind, c := range map[string]struct {
		teaches bool
		body    string
		json    bool
		choices int
		last    string // what the client waits for; then it leaves
		stays   bool   // the upstream, after the answer
		breaks  bool   // it ends with an error
	}{
		"whole":                    {teaches: true, body: text + end + "data: [DONE]\n\n"},
		"whole document":           {teaches: true, json: true, body: half + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":100}}`},
		"client leaves":            {body: text, last: "abcd", stays: true},
		"client leaves at the end": {teaches: true, body: text + end, last: "finish_reason\":\"stop", stays: true},
		"upstream breaks off":      {body: text, breaks: true},
		"upstream ends early":      {body: text},
		"half a document":          {json: true, body: half, breaks: true},
		"an error on the way":      {body: text + `data: {"error":{"message":"overloaded"}}` + "\n\n"},
		"one of three":             {body: text + end, choices: 3},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				if c.json {
					w.Header().Set("Content-Type", "application/json")
				}
				_, _ = io.WriteString(w, c.body)
				_ = http.NewResponseController(w).Flush()
				if c.stays {
					<-r.Context().Done()
				}
				if c.breaks {
					panic(http.ErrAbortHandler)
				}
			})
			settled := make(settlements, 1)
			b := newStand(t, setup{
				rules:   `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 1000000/1d, tokens: {reserve: {output: p50}}}]`,
				observe: []engine.Observer{settled},
				options: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			}, up)
			ask := func(client int) (reserved int64) {
				body := fmt.Sprintf(`{"model":"m","messages":[{"content":"Hello"}],"max_tokens":%d,"n":%d,"stream":%v}`, longest/max(1, c.choices), max(1, c.choices), !c.json)
				req, err := http.NewRequestWithContext(t.Context(), "POST", b.server.URL+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.0.0.%d", client))
				res, err := b.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if c.last != "" {
					lines := bufio.NewReader(res.Body)
					for line := ""; !strings.Contains(line, c.last); {
						if line, err = lines.ReadString('\n'); err != nil {
							t.Fatal(err)
						}
					}
				} else {
					_, _ = io.ReadAll(res.Body)
				}
				res.Body.Close()
				<-settled
				left, err := strconv.ParseInt(res.Header.Get("X-Ratelimit-Remaining-Tokens"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return 1_000_000 - left
			}
			for n := range 80 {
				ask(1 + n%8)
			}
			reserved := ask(100) // which has used nothing
			if teaches := reserved < longest; teaches != c.teaches {
				t.Errorf("%d tokens are reserved", reserved)
			}
		})
	}
}
