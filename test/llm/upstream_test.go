package llm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

// bench is a gateway in front of an upstream that speaks every protocol.
type bench struct {
	t      *testing.T
	URL    string
	engine *engine.Engine
	events chan engine.HoldKind
	denied atomic.Int64

	// next is waited for after each event of a stream of the model "slow".
	next chan struct{}
}

func (b *bench) Observe(_ *rule.Request, v *engine.Verdict, _ time.Duration) {
	if !v.Allowed {
		b.denied.Add(1)
	}
}

func (b *bench) ObserveHold(e engine.HoldEvent) { b.events <- e.Kind }

// noon is the time of the store: it stands still, so that no window ends during a test.
func noon() weir.Micros { return weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) }

const usual = `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 10000/1d, tokens: {default_output: 100}}]`

func newBench(t *testing.T, rules string) *bench {
	t.Helper()
	b := &bench{t: t, events: make(chan engine.HoldKind, 1000), next: make(chan struct{})}
	b.start(rules, http.HandlerFunc(b.answer))
	return b
}

// start starts the gateway in front of an upstream.
func (b *bench) start(rules string, answer http.Handler) {
	t := b.t
	t.Helper()
	set, problems := rule.Parse("", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	prices := new(rule.Prices)
	if err := prices.Read("prices.json", strings.NewReader(priceList)); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	if b.engine, err = engine.New(engine.Options{Store: memory.New(memory.Options{Clock: noon}), Observers: []engine.Observer{b}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Close)
	b.engine.Install(table, 1)
	limit, err := httplimit.New(b.engine, httplimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(answer)
	t.Cleanup(upstream.Close)
	route, err := gateway.ParseRoute("/=" + upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Limit: limit, Routes: []gateway.Route{route}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	b.URL = front.URL
}

// used is how many units the client has used, when the last request is settled.
func (b *bench) used() int64 {
	b.t.Helper()
	if kind := <-b.events; kind != engine.SettledHold {
		b.t.Errorf("the hold is %v", kind)
	}
	return b.spent("tokens", "ip:127.0.0.1")
}

// spent is how much of a rule's limit a client has used.
func (b *bench) spent(id, key string) int64 {
	b.t.Helper()
	var v engine.Verdict
	if _, err := b.engine.Standing(b.t.Context(), id, key, "", &v); err != nil {
		b.t.Fatal(err)
	}
	return v.Results[0].Limit - v.Results[0].Remaining
}

var files sync.Map

// recorded is a response as the vendor's documentation shows it.
func recorded(name string) string {
	text, found := files.Load(name)
	if !found {
		b, err := os.ReadFile("../../internal/gateway/llm/testdata/" + name)
		if err != nil {
			panic(err)
		}
		text, _ = files.LoadOrStore(name, string(b))
	}
	return text.(string)
}

// answer answers as the vendors do. The model "broken" has an error, a stream of the
// model "torn" breaks off after three events, or one of Gemini, and the model "batch" calls two tools at once.
func (b *bench) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var ask struct {
		Model         string
		Stream        bool
		Tools         []any
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err != nil || json.Unmarshal(body, &ask) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	api, kind := "openai", ""
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		kind = "-chat"
	case strings.HasSuffix(path, "/responses"):
		kind = "-responses"
	case strings.HasSuffix(path, "/embeddings"):
		kind = "-embeddings"
	case strings.HasSuffix(path, "/messages"):
		api = "anthropic"
	case strings.Contains(path, "/models/"):
		api = "gemini"
		ask.Stream = strings.HasSuffix(path, ":streamGenerateContent")
		_, ask.Model, _ = strings.Cut(path, "/models/")
		ask.Model, _, _ = strings.Cut(ask.Model, ":")
	}
	if ask.Model == "broken" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, recorded(api+"-error.json"))
		return
	}
	if ask.Model == "batch" {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, batches[api])
		return
	}
	if len(ask.Tools) > 0 && api != "gemini" { // whose usual answer calls one
		kind += "-tools"
	}
	if !ask.Stream {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, recorded(api+kind+".json"))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	text := recorded(api + kind + ".sse")
	end := "\n\n"
	if strings.Contains(text, "\r\n\r\n") {
		end = "\r\n\r\n"
	}
	for i, event := range strings.SplitAfter(text, end) {
		usage := strings.Contains(event, `"choices":[]`)
		if ask.Model == "torn" && i == map[string]int{"openai": 3, "anthropic": 3, "gemini": 1}[api] {
			panic(http.ErrAbortHandler)
		}
		if event == "" || usage && !ask.StreamOptions.IncludeUsage {
			continue
		}
		io.WriteString(w, event)
		w.(http.Flusher).Flush()
		if ask.Model == "slow" && !usage {
			select {
			case <-b.next:
			case <-r.Context().Done():
				return
			}
		}
	}
}
