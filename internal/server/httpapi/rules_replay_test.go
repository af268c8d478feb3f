package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
)

// logLine is a line of an access log, as it stands in a JSON string.
const logLine = `192.0.2.9 - - [15/Nov/2026:10:00:00 +0000] \"POST /api/login HTTP/1.1\" 200 1 \"-\" \"-\"`

// replayedLog is a part of an answer.
type replayedLog struct {
	Requests, Denied int
	Bad              int `json:"bad_lines"`
	Rules            []struct {
		ID      string
		Applied int
	}
	Top   []struct{ Client string } `json:"top_denied"`
	Notes []string
	First []struct{ Reason string } `json:"first_bad_lines"`
}

type replayedLogs struct {
	Draft   *replayedLog
	InForce *replayedLog `json:"in_force"`
}

func TestReplay(t *testing.T) {
	s := newStand(t, Options{})
	var lines strings.Builder
	for i := range 8 { // 10 s apart
		fmt.Fprintf(&lines, "192.0.2.%d - - [15/Nov/2026:10:%02d:%02d +0000] \"POST /api/login HTTP/1.1\" 200 1 \"-\" \"-\"\n", 9, i/6, i%6*10)
	}
	lines.WriteString("{}\n")
	replay := func(source string) (a replayedLogs) {
		t.Helper()
		s.call("POST /v1/rules/replay", send(t, map[string]any{"source": source, "log": lines.String()})).want(t, 200, &a)
		return a
	}
	a := replay("{id: login, match: {path: /api/login}, key: ip, algorithm: sliding_log, limit: 4/1m}")
	if reason := a.InForce.First[0].Reason; reason == "" || strings.Contains(reason, "--") {
		t.Errorf("it says %q, but who calls has no flags", reason) // as for the notes below
	}
	if a.InForce.Requests != 8 || a.InForce.Bad != 1 || a.InForce.Denied != 4 || a.Draft.Denied != 2 {
		t.Errorf("in force %+v, with the draft %+v", a.InForce, a.Draft)
	}
	// Only what has something to say is told.
	if len(a.InForce.Rules) != 1 || a.InForce.Rules[0].ID != "login" || len(a.Draft.Rules) != 1 || a.Draft.Top[0].Client != "ip:192.0.2.9" {
		t.Errorf("%+v", a)
	}
	a = replay("{id: new, match: {path: /nowhere}, key: ip, limit: 4/1m}")
	if last := a.Draft.Rules[len(a.Draft.Rules)-1]; last.ID != "new" || last.Applied != 0 || len(a.InForce.Rules) != 1 {
		t.Errorf("%+v", a)
	}
	if a := replay(""); a.Draft != nil || a.InForce.Requests != 8 {
		t.Errorf("%+v", a)
	}
	// Nobody was charged.
	var k KeysAnswer
	if s.call("GET /v1/keys?key=ip:192.0.2.9&rule=login", "").want(t, 200, &k); k.Results[0].Remaining != 2 {
		t.Errorf("%+v", k)
	}
	s.call("POST /v1/rules/replay", `{"source":"{id: a}","log":"x"}`).wantProblem(t, fault.BadRules)
	s.call("POST /v1/rules/replay", `{"log":" \n"}`).wantProblem(t, fault.BadField, "log")

	s.replaying.Store(maxReplaying)
	if r := s.call("POST /v1/rules/replay", `{"log":"x"}`); r.Header.Get("Retry-After") != "1" {
		t.Errorf("%v", r.Header)
	} else {
		r.wantProblem(t, fault.Busy, "2 replays")
	}
	s.replaying.Store(0)
	s.call("POST /v1/rules/replay", `{"log":"x"}`).want(t, 200, nil)
}

// Who sends a log slowly takes no turn from others: it counts when it has arrived.
func TestSlowReplays(t *testing.T) {
	s := newStand(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range maxReplaying {
		begun := make(chan struct{})
		body, more := io.Pipe()
		wg.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/rules/replay", body)
			r.Host, r.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:50000"
			s.ServeHTTP(httptest.NewRecorder(), r)
		})
		wg.Go(func() {
			fmt.Fprint(more, `{"log":"`)
			close(begun)
			<-ctx.Done()
			more.Close()
		})
		<-begun
	}
	s.call("POST /v1/rules/replay", `{"log":"x"}`).want(t, 200, nil)
	cancel()
	wg.Wait()
}

// A draft cannot make a replay keep much for each client.
func TestReplayMemory(t *testing.T) {
	s := newStand(t, Options{})
	s.replayTime = time.Hour // the machine may be slow
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, "10.0.%d.%d - - [15/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n", i>>8, i&255)
	}
	body := send(t, map[string]any{"source": "{id: a, key: ip, algorithm: sliding_buckets, buckets: 4095, limit: 1000000/1d}", "log": lines.String()})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.call("POST /v1/rules/replay", body).want(t, 200, nil)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 400<<20 {
		t.Errorf("it took %d MB", n>>20)
	}
	// As many limits as a rule may have share the room of one.
	limits := make([]string, 16)
	for i := range limits {
		limits[i] = fmt.Sprintf("1000000/%dh", 24+i)
	}
	few := strings.Join(strings.SplitAfterN(lines.String(), "\n", 2001)[:2000], "")
	body = send(t, map[string]any{"source": "{id: a, key: ip, algorithm: sliding_buckets, buckets: 4095, limits: [" + strings.Join(limits, ", ") + "]}", "log": few})
	var a replayedLogs
	runtime.ReadMemStats(&before)
	s.call("POST /v1/rules/replay", body).want(t, 200, &a)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
		t.Errorf("with %d limits it took %d MB", len(limits), n>>20)
	}
	if notes := strings.Join(a.Draft.Notes, "\n"); !strings.Contains(notes, "too lenient") || strings.Contains(notes, "--") {
		t.Errorf("the report says %s", notes)
	}
	long := strings.Repeat("#", MaxDraftBody+1)
	s.call("POST /v1/rules/replay", send(t, map[string]any{"source": long, "log": "x"})).wantProblem(t, fault.BadField, "source")
}
