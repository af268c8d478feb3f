package app

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
)

// routes are those of a gateway.
func routes(t *testing.T, texts ...string) (all []gateway.Route) {
	t.Helper()
	for _, text := range texts {
		r, err := gateway.ParseRoute(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// spans collects what is sent to it, as an OpenTelemetry collector does.
type spans struct {
	mu  sync.Mutex
	all []*traces.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
}

// A request is a span of the trace that its sender has begun, and the gateway carries
// the trace on.
func TestTraces(t *testing.T) {
	collected := &spans{}
	to := httptest.NewServer(collected)
	defer to.Close()
	var passedOn string
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passedOn = r.Header.Get("Traceparent") }))
	defer upstream.Close()
	o, _ := prepared(t, Options{Traces: to.URL, Gateway: &Gateway{Listen: "127.0.0.1:0"}}, perUser)
	o.Gateway.Routes = routes(t, upstream.URL)
	a := started(t, o)
	const id = "0af7651916cd43dd8448eb211c80319c"
	const parent = "00-" + id + "-b7ad6b7169203331-01"
	ask(t, nil, "POST", "http://"+a.Addrs().HTTP.String()+"/v1/check", `{"user": "alice"}`, "Traceparent", parent)
	ask(t, nil, "GET", "http://"+a.Addrs().Gateway.String()+"/items", "", "Traceparent", parent)
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, span := range collected.all {
		if hex.EncodeToString(span.TraceId) != id {
			t.Errorf("the span %s is of the trace %x", span.Name, span.TraceId)
		}
		names[span.Name] = true
	}
	if !names["POST /v1/check"] || !names["gateway GET"] || !names["decide"] || len(names) != 3 {
		t.Errorf("the spans are %v", names)
	}
	if len(passedOn) != len(parent) || passedOn[3:35] != id || passedOn == parent {
		t.Errorf("the upstream was told %q", passedOn)
	}
}

// Below the span of a request are its decision, and below that the calls to Redis. Probes have no
// spans, but for those that go to an upstream, and neither have decisions without a request's span.
func TestTracesOfDecisions(t *testing.T) {
	collected := &spans{}
	to := httptest.NewServer(collected)
	defer to.Close()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	redis := testredis.Start(t)
	o, _ := prepared(t, Options{Traces: to.URL, Store: "redis://" + redis.Addr + "?timeout=10s", Gateway: &Gateway{Listen: "127.0.0.1:0"}}, "rules: [{id: api, key: user, limit: 1/1h}, {id: all, key: ip, limit: 9/1h}]\n")
	o.Gateway.Routes = routes(t, upstream.URL)
	a := started(t, o)
	for range 2 {
		ask(t, nil, "POST", urlOf(a)+"/v1/check", `{"user": "alice", "ip": "192.0.2.1"}`)
	}
	ask(t, nil, "POST", urlOf(a)+"/v1/reserve", `{"user": "carol"}`)
	ask(t, nil, "GET", "http://"+a.Addrs().Gateway.String()+"/healthz", "")
	for _, probe := range probes {
		ask(t, nil, "GET", urlOf(a)+probe, "")
	}
	var v engine.Verdict
	testkit.OK(t, a.engine.Check(t.Context(), &rule.Request{User: "bob"}, &v)) // as by gRPC
	redis.Kill()
	ask(t, nil, "POST", urlOf(a)+"/v1/check", `{"user": "alice"}`)
	testkit.OK(t, a.Stop(context.Background()))

	byID := map[string]*traces.Span{}
	for _, s := range collected.all {
		byID[string(s.SpanId)] = s
	}
	var lines []string
	for _, s := range collected.all {
		line := s.Name
		for _, at := range s.Attributes {
			switch at.Key {
			case "weir.allowed", "weir.degraded":
				line += fmt.Sprintf(" %s=%v", at.Key, at.Value.GetBoolValue())
			case "weir.rule", "weir.reason", "db.system.name":
				line += fmt.Sprintf(" %s=%s", at.Key, at.Value.GetStringValue())
			}
		}
		if m := s.Status.GetMessage(); s.Status.GetCode() == traces.Status_STATUS_CODE_ERROR && (m == "failed" || m == "unavailable") {
			line += " (no answer)"
		}
		if p := byID[string(s.ParentSpanId)]; p != nil {
			line = p.Name + " > " + line
		}
		lines = append(lines, line)
		if strings.Contains(s.String(), "alice") {
			t.Errorf("a client is named in %s", s)
		}
	}
	slices.Sort(lines)
	const want = `POST /v1/check
POST /v1/check
POST /v1/check
POST /v1/check > decide weir.allowed=false weir.reason=limits weir.degraded=false weir.rule=api
POST /v1/check > decide weir.allowed=true weir.reason=limits weir.degraded=false weir.rule=api
POST /v1/check > decide weir.allowed=true weir.reason=limits weir.degraded=true
POST /v1/reserve
POST /v1/reserve > decide weir.allowed=true weir.reason=limits weir.degraded=false weir.rule=api
decide > store reserve db.system.name=redis
decide > store take db.system.name=redis
decide > store take db.system.name=redis
decide > store take db.system.name=redis
decide > store take db.system.name=redis (no answer)
gateway GET
gateway GET > decide weir.allowed=true weir.reason=limits weir.degraded=false weir.rule=all`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("the spans are\n%s\nwant\n%s", got, want)
	}
}

// Traces do not keep a request from asking for a lease.
func TestTracesOfLeases(t *testing.T) {
	collected := &spans{}
	to := httptest.NewServer(collected)
	defer to.Close()
	redis := testredis.Start(t)
	o, _ := prepared(t, Options{Traces: to.URL, Store: "redis://" + redis.Addr + "?timeout=10s"}, "rules: [{id: api, key: user, limit: 100/1d, lease: 1h}]\n")
	a := started(t, o)
	for range 4 {
		ask(t, nil, "POST", urlOf(a)+"/v1/check", `{"user": "alice"}`)
	}
	testkit.OK(t, a.Stop(context.Background()))
	calls := map[string]int{}
	for _, s := range collected.all {
		calls[s.Name]++
	}
	if calls["store take"] != 2 || calls["store lease"] != 2 {
		t.Errorf("the spans are %v", calls)
	}
}

// A stream goes on behind traces: what they wrap passes on flushes and deadlines.
func TestStreamWithTraces(t *testing.T) {
	collector := httptest.NewServer(&spans{})
	defer collector.Close()
	o, _ := prepared(t, Options{Traces: collector.URL}, perUser)
	a := started(t, o)
	resp, err := http.Get(urlOf(a) + "/v1/stats/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	lines := bufio.NewScanner(resp.Body)
	for events := 0; events < 2; {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d events: %v", events, lines.Err())
		}
		if strings.HasPrefix(lines.Text(), "data:") {
			events++
		}
	}
}
