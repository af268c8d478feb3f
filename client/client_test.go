package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

func TestCheck(t *testing.T) {
	c := connect(t, startService(t, &service{}), Options{})
	login := &Request{IP: netip.MustParseAddr("192.0.2.1"), Path: "/login", Method: "POST", Host: "h", Cost: 1}
	for i, want := range []Verdict{
		{Allowed: true, Remaining: 1},
		{Allowed: true, Remaining: 0},
		{Allowed: false, Status: 429, Code: 10007, Message: "too many logins"},
	} {
		v, err := c.Check(t.Context(), login)
		if err != nil {
			t.Fatal(err)
		}
		if v.ResetAfter <= 59*time.Minute || (v.RetryAfter > 59*time.Minute) == v.Allowed {
			t.Errorf("answer %d says reset %v, retry %v", i, v.ResetAfter, v.RetryAfter)
		}
		if len(v.Results) != 1 || v.Results[0].ResetAfter < 59*time.Minute {
			t.Fatalf("answer %d has %+v", i, v.Results)
		}
		r := v.Results[0]
		if !r.ResetAt.Equal(v.ResetAt) || time.Until(v.ResetAt) <= 59*time.Minute {
			t.Errorf("answer %d says reset at %v and %v", i, v.ResetAt, r.ResetAt)
		}
		r.ResetAt, v.ResetAt = time.Time{}, time.Time{}
		r.ResetAfter, r.RetryAfter, v.ResetAfter, v.RetryAfter = 0, 0, 0, 0
		if want := (Result{Rule: "login", Key: "ip:192.0.2.1", Algorithm: "sliding_log", Policy: "2/1h", Allowed: want.Allowed, Asked: true, Cost: 1, Limit: 2, Remaining: want.Remaining}); r != want {
			t.Errorf("answer %d has %+v, want %+v", i, r, want)
		}
		want.Rule, want.Limit, want.Version, want.Results = "login", 2, 1, v.Results
		if !reflect.DeepEqual(*v, want) {
			t.Errorf("answer %d is %+v, want %+v", i, *v, want)
		}
	}
	for _, c2 := range []struct {
		r    Request
		want string
	}{
		{Request{}, "true limits  0"},
		{Request{User: "healthcheck", Path: "/login"}, "true exempt  0"},
		{Request{IP: netip.MustParseAddr("203.0.113.66")}, "false blocked  403"},
		{Request{User: "u", Path: "/api/x", Cost: 1001}, "false limits api 429"},
		{Request{Headers: map[string]string{"x-tenant": "a"}}, "true limits  0 tenant shadow"},
	} {
		v, err := c.Check(t.Context(), &c2.r)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%v %v %s %d", v.Allowed, v.Reason, v.Rule, v.Status)
		if len(v.Results) > 0 && v.Results[0].Shadow {
			got += " " + v.Results[0].Rule + " shadow"
		}
		if got != c2.want || v.Degraded || v.Err != nil || v.RetryAfter != 0 {
			t.Errorf("%+v: %s of %+v, want %s", c2.r, got, v, c2.want)
		}
	}
	// A peek charges nothing; a queue says how long to hold.
	for range 2 {
		if v, err := c.Peek(t.Context(), &Request{User: "p", Path: "/api/x"}); err != nil || v.Remaining != 1000 {
			t.Errorf("%+v %v", v, err)
		}
	}
	c.Check(t.Context(), &Request{Path: "/queue"})
	if v, err := c.Check(t.Context(), &Request{Path: "/queue"}); err != nil || !v.Allowed || v.Delay < 59*time.Minute || v.Results[0].Delay != v.Delay {
		t.Errorf("%+v %v", v, err)
	}
}

func TestCheckMany(t *testing.T) {
	c := connect(t, startService(t, &service{}), Options{})
	login := &Request{IP: netip.MustParseAddr("192.0.2.1"), Path: "/login"}
	vs, err := c.CheckMany(t.Context(), []*Request{login, login, {User: "u", Path: "/api/x"}, login})
	if err != nil || len(vs) != 4 || !vs[1].Allowed || vs[2].Remaining != 999 || vs[3].Allowed {
		t.Fatalf("%+v %v", vs, err)
	}
	if vs, err = c.CheckMany(t.Context(), nil); err != nil || len(vs) != 0 {
		t.Errorf("%v %v", vs, err)
	}
	if _, err = c.CheckMany(t.Context(), make([]*Request, MaxRequests+1)); err == nil || !strings.Contains(err.Error(), "101 requests") {
		t.Error(err)
	}
	if _, err = c.CheckMany(t.Context(), []*Request{{User: "u", Path: "/api/x"}, {Cost: -1}}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	if v, err := c.Peek(t.Context(), &Request{User: "u", Path: "/api/x"}); err != nil || v.Remaining != 999 {
		t.Errorf("the others were charged: %+v %v", v, err)
	}
}

// A mistake of the caller is an error, however often, and no reason to think that the
// service is unavailable. So is that the caller does not wait.
func TestMistakes(t *testing.T) {
	c := connect(t, startService(t, &service{}), Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * maxFailures {
		if _, err := c.Check(t.Context(), &Request{Cost: -1}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "negative") {
			t.Error(err)
		}
		if _, err := c.Check(gone, &Request{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if v, err := c.Check(t.Context(), &Request{User: "u", Path: "/api/x"}); err != nil || v.Degraded || v.Remaining != 999 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestTLSAndToken(t *testing.T) {
	donor := httptest.NewTLSServer(nil) // for its certificate, which is good for example.com
	defer donor.Close()
	var mu sync.Mutex
	var seen []string
	s := startService(t, &service{options: []grpc.ServerOption{
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: donor.TLS.Certificates})),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			mu.Lock()
			seen = append(seen, md["authorization"]...)
			mu.Unlock()
			return next(ctx, req)
		}),
	}})
	trust := x509.NewCertPool()
	trust.AddCert(donor.Certificate())
	c := connect(t, s, Options{TLS: &tls.Config{RootCAs: trust, ServerName: "example.com"}, Token: "a-token-of-the-tests"})
	if v, err := c.Check(t.Context(), &Request{User: "u", Path: "/api/x"}); err != nil || v.Degraded || v.Remaining != 999 {
		t.Errorf("%+v %v", v, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(seen) != "[Bearer a-token-of-the-tests]" {
		t.Errorf("the service saw %v", seen)
	}
	// A service that cannot prove who it is, is unavailable.
	stranger := connect(t, s, Options{TLS: &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}})
	if v, err := stranger.Check(t.Context(), &Request{}); err != nil || !v.Degraded || v.Err == nil {
		t.Errorf("%+v %v", v, err)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "Address is required"},
		{Options{Address: "localhost"}, "write host:port"},
		{Options{Address: ":80"}, "write host:port"},
		{Options{Address: "http://localhost:80"}, "write host:port"},
		{Options{Address: "localhost:1", Timeout: -1}, "Timeout"},
		{Options{Address: "localhost:1", OnFailure: 2}, "OnFailure"},
		{Options{Address: "localhost:1", MaxInFlight: -1}, "MaxInFlight"},
		{Options{Address: "localhost:1", Token: "a b"}, "Token has characters"},
		{Options{Address: "example.com:1", Token: "a-token"}, "in clear"},
		{Options{Address: "192.0.2.1:1", Token: "a-token"}, "in clear"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
		if c.o.Token != "" && strings.Contains(c.want, c.o.Token) {
			t.Error("the token is in the error")
		}
	}
	for _, o := range []Options{
		{Address: "localhost:1", Token: "a-token"}, {Address: "[::1]:1", Token: "a-token"},
		{Address: "unix:/run/weir.sock", Token: "a-token"}, {Address: "192.0.2.1:1", Token: "a-token", TLS: new(tls.Config)},
	} {
		c, err := New(o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if c.options.Timeout != 100*time.Millisecond || c.options.MaxInFlight != 1000 || c.options.Logger == nil {
			t.Errorf("the defaults are %+v", c.options)
		}
		c.Close()
	}
	if got := Reason(9).String(); got != "unknown" {
		t.Error(got)
	}
	if reasons[pb.Reason_REASON_UNAVAILABLE] != Unavailable {
		t.Error("a store that is gone")
	}
}

// Bytes that cannot be sent do not keep a request from being checked.
func TestNotUTF8(t *testing.T) {
	s := startService(t, &service{})
	c := connect(t, s, Options{OnFailure: Closed})
	for i := range 2 * maxFailures {
		headers := map[string]string{"X-Tenant": "a\xff", "X-\xfe": "b"}
		v, err := c.Check(t.Context(), &Request{User: "u\xff", Path: "/api/\xff", Headers: headers, Cookies: map[string]string{"c": "\xff"}})
		if err != nil || v.Degraded || !v.Allowed || v.Remaining != int64(999-i) || len(v.Results) != 2 || v.Results[0].Key != "user:u\uFFFD" {
			t.Fatalf("%+v, %v", v, err)
		}
		if len(headers) != 2 || headers["X-\xfe"] != "b" {
			t.Errorf("the map was changed: %v", headers)
		}
		if _, err := c.Hold("\xff").Cancel(t.Context()); err == nil || errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	}
}

// A wrong token is an error, however the client answers while the service is unavailable, and
// is no failure of the service.
func TestToken(t *testing.T) {
	list := testkit.Must(trust.ParseTokens([]byte("app check a-token-that-is-long-enough\nbob read another-token-long-enough\n")))(t)
	guard := testkit.Must(manage.NewGuard(manage.GuardOptions{}))(t)
	s := startService(t, &service{checks: manage.NewChecks(func() *trust.List { return list }, guard, slog.New(slog.DiscardHandler))})
	for token, want := range map[string]codes.Code{
		"": codes.Unauthenticated, "nobody-knows-this-token": codes.Unauthenticated, "another-token-long-enough": codes.PermissionDenied, "a-token-that-is-long-enough": codes.OK,
	} {
		client := connect(t, s, Options{Token: token})
		for range 2 * maxFailures {
			v, err := client.Check(t.Context(), &Request{})
			if status.Code(err) != want || want == codes.OK && v.Degraded {
				t.Errorf("%q: %+v, %v", token, v, err)
			}
		}
		if _, err := client.Charge(t.Context(), &Request{}); err == nil || status.Code(err) == codes.Unavailable {
			t.Errorf("%q charges: %v", token, err)
		}
	}
}
