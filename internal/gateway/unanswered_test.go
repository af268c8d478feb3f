package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

const prompted = `{"messages":[{"role":"user","content":"Hello"}]}`

// A request that reached an upstream and got no answer costs what was reserved, because the upstream
// may have done the work. If it never reached one, it costs nothing.
func TestUnanswered(t *testing.T) {
	const rules = `
rules:
  - {id: tokens, key: ip, algorithm: fixed_window, limit: 100000/1d, tokens: {default_output: 100}}
  - {id: failures, key: ip, algorithm: fixed_window, limit: 100000/1d, count: {status: [401]}}`
	arrived := make(chan struct{})
	for name, c := range map[string]struct {
		upstream func(t *testing.T) string
		header   time.Duration // how long the gateway waits for an answer
		leaves   bool
		status   int
		want     [2]int64
	}{
		"the client leaves": {func(t *testing.T) string {
			return upstream(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // else it would not see that the gateway leaves
				close(arrived)
				<-r.Context().Done()
			})
		}, 0, true, 499, [2]int64{105, 1}},
		"the upstream dies": {func(t *testing.T) string {
			return rude(t, func(net.Conn, *bufio.Reader, *http.Request) {})
		}, 0, false, 502, [2]int64{105, 1}},
		"the upstream is late": {func(t *testing.T) string {
			return upstream(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			})
		}, time.Millisecond, false, 504, [2]int64{105, 1}},
		"the upstream says so": {func(t *testing.T) string {
			return upstream(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) })
		}, 0, false, 502, [2]int64{0, 0}},
		"nobody listens": {denying, 0, false, 502, [2]int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			b := newStand(t, setup{rules: rules, store: store, options: Options{HeaderTimeout: c.header}}, c.upstream(t))
			if c.leaves {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-arrived; cancel() }()
				req, err := http.NewRequestWithContext(ctx, "POST", b.server.URL+"/v1/chat/completions", strings.NewReader(prompted))
				if err != nil {
					t.Fatal(err)
				}
				if res, err := b.client.Do(req); err == nil {
					res.Body.Close()
					t.Errorf("it was answered: %d", res.StatusCode)
				}
			} else {
				b.do("POST", "/v1/chat/completions", strings.NewReader(prompted))
			}
			if o := b.outcome(); o.Status != c.status {
				t.Errorf("observed %+v, want %d", o, c.status)
			}
			b.server.Close() // which waits until the hold is settled
			for i, id := range []string{"tokens", "failures"} {
				limit, err := weir.Limit{Name: id, Algorithm: weir.FixedWindow, N: 100000, Period: 24 * time.Hour}.Compile()
				if err != nil {
					t.Fatal(err)
				}
				d, err := store.Peek(t.Context(), nil, weir.Op{Key: "ip:127.0.0.1", Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				if got := 100000 - d[0].Remaining; got != c.want[i] {
					t.Errorf("%s: %d are used, want %d", id, got, c.want[i])
				}
			}
		})
	}
}
