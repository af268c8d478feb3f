package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func TestObserveHTTP(t *testing.T) {
	m, err := New(Options{MaxRoutes: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		route  string
		status int
	}{
		{"GET /a/{id}", 200}, {"GET /a/{id}", 204}, {"GET /a/{id}", 429}, {"POST /b", 503},
		{"GET /c", 200}, {"GET /d", 200}, {"", 404}, {"POST /b", 0}, {"POST /b", 999},
		{"\xff", 200}, {strings.Repeat("x", 500), 200},
	} {
		m.ObserveHTTP(c.route, c.status, 2*time.Millisecond)
	}
	want(t, m, "weir_http_request_seconds_count",
		`{code="4xx",route="(none)"} 1`, `{code="2xx",route="(other)"} 4`,
		`{code="2xx",route="GET /a/{id}"} 2`, `{code="4xx",route="GET /a/{id}"} 1`,
		`{code="(other)",route="POST /b"} 2`, `{code="5xx",route="POST /b"} 1`)
}

func TestObserveUpstream(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, denied := net.Dial("tcp", "127.0.0.1:0")
	if denied == nil {
		t.Fatal("somebody listens on port 0")
	}
	for _, c := range []struct {
		status int
		err    error
	}{
		{200, nil}, {502, nil},
		{0, fmt.Errorf("shop: %w", context.DeadlineExceeded)},
		{0, denied},
		{0, errors.New("unexpected EOF")},
		{0, fmt.Errorf("shop: %w", context.Canceled)},
		{200, errors.New("the body broke off")},
	} {
		m.ObserveUpstream("/shop/", "shop:80", c.status, c.err, time.Millisecond)
	}
	want(t, m, "weir_upstream_seconds_count",
		`{class="2xx",route="/shop/",upstream="shop:80"} 1`, `{class="5xx",route="/shop/",upstream="shop:80"} 1`,
		`{class="canceled",route="/shop/",upstream="shop:80"} 1`, `{class="error",route="/shop/",upstream="shop:80"} 4`)
	want(t, m, "weir_upstream_errors_total",
		`{kind="connect",upstream="shop:80"} 1`, `{kind="other",upstream="shop:80"} 2`, `{kind="timeout",upstream="shop:80"} 1`)
}
