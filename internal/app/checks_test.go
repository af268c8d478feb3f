package app

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/weirhq/weir/sdk/proto/weir/v1"

	"github.com/weirhq/weir/middleware/httplimit"
)

// An address that others can reach takes tokens for checks, or --open-checks.
func TestCheckTokens(t *testing.T) {
	const needs = " is reachable from other machines, so tokens are required; set --admin-token-file or WEIR_ADMIN_TOKEN (openssl rand -hex 32 makes a token)"
	const open = ", or let everybody check with --open-checks, or listen on "
	trusted := httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		o    Options
		want string // of the error
	}{
		{Options{GRPC: "0.0.0.0:8081"}, "--grpc 0.0.0.0:8081" + needs + open + "127.0.0.1:8081"},
		{Options{GRPC: "0.0.0.0:8081", OpenChecks: true}, ""},
		{Options{GRPC: "0.0.0.0:8081", Token: "a-token-of-the-tests"}, ""},
		{Options{GRPC: "127.0.0.1:8081"}, ""},
		{Options{GRPC: Off}, ""},
		{Options{HTTP: "0.0.0.0:8080"}, "--http 0.0.0.0:8080" + needs + ", or listen on 127.0.0.1:8080"},
		{Options{HTTP: "0.0.0.0:8080", OpenChecks: true}, "--http 0.0.0.0:8080" + needs + ", or listen on 127.0.0.1:8080"},
		{Options{HTTP: "0.0.0.0:8080", SignInHeader: "X-User", Limits: trusted}, "--http 0.0.0.0:8080" + needs + open + "127.0.0.1:8080"},
		{Options{HTTP: "0.0.0.0:8080", SignInHeader: "X-User", Limits: trusted, OpenChecks: true}, ""},
	} {
		got := ""
		if _, err := New(c.o); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.o, got, c.want)
		}
	}
}

// If there are tokens, a check takes one on every address, until --open-checks says otherwise.
func TestWhoMayCheck(t *testing.T) {
	const edge = "a-check-token-of-the-tests"
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("alice admin an-admin-token-of-the-tests\nedge check "+edge+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		o       Options
		without int // the status of a check without a token
	}{
		{"this machine", Options{}, 200},
		{"this machine with tokens", Options{TokenFile: file}, 401},
		{"all addresses", Options{HTTP: "0.0.0.0:0", GRPC: "0.0.0.0:0", TokenFile: file}, 401},
		{"all addresses, open", Options{HTTP: "0.0.0.0:0", GRPC: "0.0.0.0:0", TokenFile: file, OpenChecks: true}, 200},
		{"only gRPC, open", Options{GRPC: "0.0.0.0:0", OpenChecks: true}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, log := prepared(t, c.o, perUser)
			o.HTTP, o.GRPC = cmp.Or(c.o.HTTP, o.HTTP), cmp.Or(c.o.GRPC, o.GRPC)
			a := started(t, o)
			local := func(a net.Addr) string { return fmt.Sprint("127.0.0.1:", a.(*net.TCPAddr).Port) }
			web := "http://" + local(a.Addrs().HTTP)
			if told := strings.Contains(log.String(), "because of --open-checks"); told != c.o.OpenChecks {
				t.Errorf("the log says that checks are open: %v", told)
			}
			for _, header := range []string{"", "Weir-Token"} {
				want := c.without
				var headers []string
				if header != "" {
					want, headers = 200, []string{header, edge}
				}
				for _, what := range []string{"POST /v1/check", "GET /v1/authz"} {
					method, path, _ := strings.Cut(what, " ")
					if got, body := ask(t, nil, method, web+path, "{}", headers...); got != want {
						t.Errorf("%s with %q: %d %s, want %d", what, header, got, body, want)
					}
				}
			}
			conn, err := grpc.NewClient(local(a.Addrs().GRPC), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = pb.NewLimiterClient(conn).Check(t.Context(), &pb.CheckRequest{User: "alice"})
			if (status.Code(err) == codes.OK) != (c.without == 200) {
				t.Errorf("gRPC: %v", err)
			}
		})
	}
}
