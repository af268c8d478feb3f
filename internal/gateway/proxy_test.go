package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// To read a body takes no memory, and to prepare a usual request takes a map, its room and the
// text of an address.
func TestPrepareAllocations(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, saying("x")))
	for _, c := range []struct {
		method  string
		headers []string
	}{
		{"GET", []string{"User-Agent", "Accept", "Accept-Encoding"}},
		{"GET", []string{"Accept", "Connection", "X-Request-Id"}},
		{"POST", []string{"User-Agent", "Accept", "Content-Length", "Content-Type", "Connection", "Authorization"}},
	} {
		r := httptest.NewRequest(c.method, "/", strings.NewReader("x"))
		for _, name := range c.headers {
			r.Header[name] = []string{"1"}
		}
		x := &exchange{Context: t.Context(), gateway: b.Gateway, in: r}
		n := testing.AllocsPerRun(100, func() { x.prepare(r) })
		if want := headersOut(r.Header); n > 3 || len(x.out.Header) != want {
			t.Errorf("%v: %v allocations, %d headers of %d", c, n, len(x.out.Header), want)
		}
	}
	in := &body{reader: strings.NewReader(strings.Repeat("x", 1000)), exchange: new(exchange)}
	to := make([]byte, 1)
	if n := testing.AllocsPerRun(100, func() { in.Read(to) }); n > 0 {
		t.Errorf("%v allocations to read", n)
	}
}
