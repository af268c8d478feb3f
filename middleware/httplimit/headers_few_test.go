package httplimit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/rule"
)

// The quick way says what the long way says, and what one handler does to its headers
// is not seen by the next.
func TestFewHeaders(t *testing.T) {
	for _, limit := range []string{
		"limit: 3/1m", "limit: 3/1m, burst: 9", "limit: 100/1s, algorithm: fixed_window", "limit: 3/500ms", "limit: 7/1d, algorithm: sliding_log",
	} {
		m := newBench(t, "rules: [{id: a, key: ip, "+limit+"}]", Options{})
		for i := range 5 {
			var v engine.Verdict
			if err := m.engine.Check(t.Context(), &rule.Request{IP: netip.MustParseAddr("192.0.2.1")}, &v); err != nil {
				t.Fatal(err)
			}
			wait := time.Duration(0)
			if !v.Allowed {
				wait = Describe(&v).Wait()
			}
			age := time.Duration(i) * time.Millisecond
			for families := range NoHeaders + 1 {
				few, any := http.Header{}, http.Header{}
				writeFew(few, &v, age, wait, families)
				front.Write(any, &front.HTTP, &v, age, wait, int(families))
				if !reflect.DeepEqual(few, any) {
					t.Errorf("%s, %03b: %v, want %v", limit, families, few, any)
				}
				for name := range few {
					few[name][0] = "spoilt"
					_ = append(few[name], "spoilt")
				}
			}
		}
	}
}

// What is remembered of limits is bounded, however often the rules change.
func TestSayingsAreBounded(t *testing.T) {
	var all said
	m := newBench(t, "rules: [{id: a, key: ip, limit: 3/1m}]", Options{})
	var v engine.Verdict
	if err := m.engine.Check(t.Context(), &rule.Request{IP: netip.MustParseAddr("192.0.2.1")}, &v); err != nil {
		t.Fatal(err)
	}
	for range 2*maxSaid + 5 {
		r := v.Results[0]
		limit := *r.Compiled
		r.Compiled = &limit
		all.of(&v, &r)
	}
	n := 0
	all.byLimit.Range(func(any, any) bool { n++; return true })
	if n == 0 || n > maxSaid {
		t.Errorf("%d are remembered", n)
	}
}

// The policy of a calendar limit has the length of the present month, not that of an earlier one.
func TestPolicyOfMonths(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	b := benchOn(t, "rules: [{id: a, key: ip, limit: 100/month}]", Options{}, func() weir.Micros { return weir.MicrosOf(now) })
	for _, want := range []string{`"a";q=100;w=2678400`, `"a";q=100;w=2419200`} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, from("192.0.2.1:1234", "GET", "/"))
		if got := w.Header().Get("RateLimit-Policy"); got != want {
			t.Errorf("at %v: %s, want %s", now, got, want)
		}
		now = now.AddDate(0, 0, 1)
	}
}
