package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// Whatever is sent, and by however many at once, takes a memory that is bounded. Eight
// documents of braces once took 21 GB. With the race detector bodies are few
// and short, as their size only makes it slow; make test sends the long ones without it.
func TestHostileBodies(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Counters: memory.New(memory.Options{})}})
	const full = rule.MaxDocument - 20
	many := func(s string, times int) string {
		if testkit.Race {
			times /= 100
		}
		return strings.Repeat(s, times)
	}
	for _, c := range []struct {
		name, what, body string
		times, most      int
	}{
		{"names in braces", "POST /v1/rules/validate", "{" + many("a,", full/2) + "}", 16, 256},
		{"long lists", "POST /v1/rules/validate", "exempt:\n  user:\n" + many("  - a\n", full/6), 8, 256 + 32},
		{"a rule", "POST /v1/rules/validate?as=rule", "{id: a, overrides: {" + many("a,", 15_000) + "}}", 16, 256},
		{"a draft", "POST /v1/rules/format", `{"source":"a: {` + many("a,", MaxDraftBody/2-20) + `}"}`, 16, 256},
		{"a draft in JSON", "POST /v1/rules/format", `{"rule":{"a":[` + many("1,", MaxDraftBody/2-20) + `1]}}`, 16, 256},
		{"a shorter draft in JSON", "POST /v1/rules/format", `{"rule":{"a":[` + many("1,", 52_000) + `1]}}`, 16, 256},
		{"a draft with overrides", "POST /v1/rules/format", manyOverrides(30_000), 16, 256},
		{"a draft to try", "POST /v1/rules/try", `{"source":"","request":{"headers":{` + many(`"a":"",`, 140_000) + `"a":""}}}`, 16, 160},
		{"a log", "POST /v1/rules/replay", `{"log":"` + many(logLine+`\n`, (MaxReplayBody-20)/len(logLine+`\n`)) + `"}`, 16, 160},
		{"a log of names", "POST /v1/rules/replay", `{"log":"",` + many(`"a":0,`, MaxReplayBody/6-10) + `"a":0}`, 16, 160},
		{"counters", "POST /v1/counters/add", `{"add":[` + many("{},", 80_000) + "{}]}", 64, 160},
		{"actions", "POST /v1/actions", `{"actions":[` + many(`"",`, 80_000) + `""]}`, 64, 128},
		{"check", "POST /v1/check", `{"headers":{` + many(`"a":"",`, 9000) + `"a":""}}`, 64, 64},
		{"simulate", "POST /v1/simulate", `{"algorithms":[` + many(`"",`, 300_000) + `""]}`, 64, 160},
	} {
		if testkit.Race {
			c.times /= 4
		}
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			got := map[int]int{}
			most := testkit.Least(uint64(c.most)<<20, func() {
				var wg sync.WaitGroup
				for range c.times {
					wg.Go(func() {
						status := s.call(c.what, c.body).StatusCode
						mu.Lock()
						defer mu.Unlock()
						got[status]++
					})
				}
				wg.Wait()
			})
			if most > uint64(c.most)<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
			t.Logf("%d MiB, %v", most>>20, got)
		})
	}
}

// manyOverrides is a draft of which every line is to change.
func manyOverrides(n int) string {
	if testkit.Race {
		n /= 100
	}
	var was, is strings.Builder
	for i := range n {
		fmt.Fprintf(&was, `  k%d: 1/1s\n`, i)
		fmt.Fprintf(&is, `"l%d":1,`, i)
	}
	return `{"source":"id: a\noverrides:\n` + was.String() + `","rule":{"overrides":{` + is.String() + `"z":1}}}`
}

// Clients that send large bodies slowly do not block others, whose bodies are short or long.
func TestSlowBodies(t *testing.T) {
	const room = 1 << 20
	s := newStand(t, Options{})
	s.bodies.open = budget.NewBodyReader(room)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 2 * room / MaxCheckBody {
		begun := make(chan struct{})
		body, more := io.Pipe()
		wg.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/check", body)
			r.Host, r.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:50000"
			s.ServeHTTP(httptest.NewRecorder(), r)
		})
		wg.Go(func() {
			fmt.Fprint(more, strings.Repeat(" ", MaxCheckBody-100))
			close(begun)
			<-ctx.Done()
			more.Close()
		})
		<-begun
	}
	for _, n := range []int{0, 8 << 10, MaxCheckBody - 100} {
		if got := s.call("POST /v1/check", `{"ip": "203.0.113.7"}`+strings.Repeat(" ", n)); got.StatusCode != http.StatusOK {
			t.Errorf("%d bytes: %d %s", n, got.StatusCode, got.body)
		}
	}
	cancel()
	wg.Wait()
	if s.bodies.open.Free() != room {
		t.Error("some room was not given back")
	}
}
