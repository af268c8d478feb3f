package httplimit

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

const byProgram = `
rules:
  - {id: all, key: ip, algorithm: sliding_log, limit: 1000/1h}
  - {id: bytes, key: ip, algorithm: sliding_log, limit: 1000/1h, unit: bytes}
  - {id: failed, key: ip, algorithm: sliding_log, limit: 1000/1h, count: {status: [401]}}
`

// What the program knows of a response is charged, however the response ends.
func TestActual(t *testing.T) {
	const ip = "ip:127.0.0.1"
	byStatus := func(_ *http.Request, resp *rule.Response) engine.Used {
		if resp.Status == 0 {
			return nil
		}
		return engine.ByUnit(map[string]int64{"bytes": resp.Bytes + int64(resp.Status)})
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		actual  func(*http.Request, *rule.Response) engine.Used
		used    [3]int64 // all, bytes, failed
	}{
		"by unit":      {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }, byStatus, [3]int64{10, 205, 0}},
		"a status":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, byStatus, [3]int64{10, 401, 10}},
		"no answer":    {func(w http.ResponseWriter, r *http.Request) {}, byStatus, [3]int64{10, 200, 0}},
		"panic":        {func(w http.ResponseWriter, r *http.Request) { panic("x") }, byStatus, [3]int64{10, 50, 10}},
		"panics later": {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello"); panic("x") }, byStatus, [3]int64{10, 205, 0}},
		"abort":        {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, byStatus, [3]int64{10, 50, 10}},
		"hijack": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}, byStatus, [3]int64{10, 101, 0}},
		"for all": {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") },
			func(r *http.Request, resp *rule.Response) engine.Used { return engine.Units(resp.Bytes) }, [3]int64{5, 5, 0}},
		"nothing": {func(w http.ResponseWriter, r *http.Request) {},
			func(*http.Request, *rule.Response) engine.Used { return engine.Units(0) }, [3]int64{0, 0, 0}},
		"the handler knows it": {func(w http.ResponseWriter, r *http.Request) {
			engine.HoldOf(r.Context()).Settle(r.Context(), engine.Units(7))
		}, byStatus, [3]int64{7, 7, 7}},
		"the handler errs": {func(w http.ResponseWriter, r *http.Request) {
			if _, err := engine.HoldOf(r.Context()).Settle(r.Context(), engine.ByUnit{"byts": 7}); err == nil {
				t.Error("no error")
			}
		}, byStatus, [3]int64{10, 200, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s := newSettling(t, byProgram, Options{
				Cost:  func(*http.Request) int64 { return 10 },
				Costs: func(*http.Request) map[string]int64 { return map[string]int64{"bytes": 50} },
				Actual: func(r *http.Request, resp *rule.Response) engine.Used {
					calls++
					if resp.Duration < 0 || engine.HoldOf(r.Context()) == nil {
						t.Errorf("%v after %v", r, resp.Duration)
					}
					return test.actual(r, resp)
				},
			})
			handler := s.Wrap(test.handler)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if recover() != nil {
						panic(http.ErrAbortHandler) // keeps the log clean
					}
				}()
				handler.ServeHTTP(w, r)
			}))
			if resp, err := server.Client().Get(server.URL); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			server.Close()
			for <-s.events != engine.SettledHold { // Close does not wait for one that was hijacked
			}
			if got := [3]int64{s.used("all", ip), s.used("bytes", ip), s.used("failed", ip)}; got != test.used {
				t.Errorf("used %d; want %d", got, test.used)
			}
			if calls != 1 && name != "the handler knows it" {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A unit that no rule has is an error of the program: a request with such a cost is not served, and
// such a result of Actual is not used. Both are logged.
func TestUnknownUnit(t *testing.T) {
	var log strings.Builder
	costs := map[string]int64{"byts": 50}
	s := newSettling(t, byProgram, Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Costs:  func(*http.Request) map[string]int64 { return costs },
		Actual: func(*http.Request, *rule.Response) engine.Used { return engine.ByUnit{"byts": 7} },
	})
	handler := s.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	serve := func() int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "127.0.0.1:1"
		handler.ServeHTTP(w, r)
		return w.Code
	}
	if status := serve(); status != 400 || !strings.Contains(log.String(), `M006`) || !strings.Contains(log.String(), "there are bytes") {
		t.Errorf("%d: %s", status, &log)
	}
	costs = map[string]int64{"bytes": 50}
	if status := serve(); status != 200 || !strings.Contains(log.String(), `M009`) || s.used("bytes", "ip:127.0.0.1") != 50 {
		t.Errorf("%d, %d used: %s", status, s.used("bytes", "ip:127.0.0.1"), &log)
	}
}
