package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// What keeps weir from starting is said in a sentence.
func TestFailedStarts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	write(t, dir, "good.yaml", perUser)
	write(t, dir, "bad.yaml", "rules: [{id: api, keys: user, limit: 5/1h}]")
	write(t, dir, "short", "secret")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--rules good.yaml --http " + taken.Addr().String(), 1, "is already in use"},
		{"--rules bad.yaml", 1, "bad.yaml:1:19"},
		{"--rules good.yaml --store redis://127.0.0.1:1 --require-store", 1, "is unavailable"},
		{"--rules good.yaml --store redis://127.0.0.1:x", 2, "--store"},
		{"--rules good.yaml --store memory://host", 2, "memory://?max_keys=1000000"},
		{"--rules redis", 2, "--rules redis requires a store in Redis"},
		{"--rules good.yaml --http 0.0.0.0:0", 2, "is reachable from other machines"},
		{"--rules good.yaml --http nowhere", 2, "is not an address"},
		{"--rules good.yaml --grpc nowhere", 2, "--grpc: \"nowhere\" is not an address"},
		{"--rules good.yaml --envoy-config missing --envoy-require-config", 1, "--envoy-config"},
		{"--rules good.yaml --admin-token-file short", 1, "openssl rand -hex 32"},
		{"--rules good.yaml --tls-cert nothing", 1, "--tls-cert"},
		{"--rules good.yaml --user-header X-User", 2, "--trusted-proxies"},
		{"--rules good.yaml --sign-in-header X-User", 2, "--trusted-proxies"},
		{"--rules good.yaml --sign-in-scope root", 2, "write read or use or admin"},
		{"--rules good.yaml --trusted-proxies everyone", 2, "is not a network"},
		{"--rules good.yaml --traces nowhere", 1, "--traces"},
		{"--rules good.yaml --config missing.yaml", 1, "missing.yaml"},
		{"extra", 2, "takes only flags"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := append([]string{"serve"}, strings.Fields(c.args)...)
			if !strings.Contains(c.args, "--http") {
				args = append(args, "--http", "127.0.0.1:0")
			}
			if !strings.Contains(c.args, "--grpc") {
				args = append(args, "--grpc", "127.0.0.1:0")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or one that starts would never end
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(bin, "weir"), args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "goroutine") {
				t.Errorf("it ended with %d (%v), want %d and %q:\n%s", code, err, c.code, c.want, out)
			}
			if strings.Contains(string(out), "secret") {
				t.Errorf("it tells a secret: %s", out)
			}
		})
	}
}

// Without its Redis weir starts, goes on as the rules say, and is well again by itself.
func TestStartWithoutRedis(t *testing.T) {
	redis := testredis.Start(t)
	redis.Kill()
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	for _, rules := range []string{"rules.yaml", "redis"} {
		t.Run(rules, func(t *testing.T) {
			p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--store", "redis://"+redis.Addr, "--rules", rules)
			c := client(t)
			ready := func() int { return ask(t, c, "GET", p.URL+"/readyz", "").Status }
			if rules == "redis" {
				if got := ready(); got != http.StatusServiceUnavailable {
					t.Errorf("without rules it is ready: %d", got)
				}
				if a := ask(t, c, "GET", p.URL+"/v1/rules", ""); a.Status != http.StatusServiceUnavailable {
					t.Errorf("%d %s", a.Status, a.Text)
				}
			} else {
				for i := range 7 {
					if a := ask(t, c, "POST", p.URL+"/v1/check", alice); a.Allowed != (i < 5) || !a.Degraded {
						t.Errorf("request %d without Redis: %s", i+1, a.Text)
					}
				}
			}
			redis.Restart()
			waitFor(t, "health", func() bool {
				return ready() == http.StatusOK && !ask(t, c, "POST", p.URL+"/v1/check", `{"user": "bob", "peek": true}`).Degraded
			})
			redis.Kill()
		})
	}
}

// Tokens decide who may check and manage weir, and land in the history.
func TestTokens(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	const reader, admin, edge = "reader-0123456789abcdef", "admin-0123456789abcdef", "edge-0123456789abcdef"
	file := write(t, dir, "tokens", "grafana read "+reader+"\nalice admin "+admin+"\nedge check clients=user:* "+edge+"\n")
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--admin-token-file", file)
	c := client(t)
	status := func(method, path, token, body string) int {
		return ask(t, c, method, p.URL+path, body, "Authorization", "Bearer "+token, "If-Match", "*").Status
	}
	for _, s := range []struct {
		method, path, token string
		want                int
	}{
		{"POST", "/v1/check", "", 401}, {"POST", "/v1/check", reader, 403}, {"POST", "/v1/check", edge, 200}, {"POST", "/v1/check", admin, 200},
		{"GET", "/v1/rules", edge, 403}, {"GET", "/v1/rules", "", 401}, {"GET", "/v1/rules", "wrong", 401},
		{"GET", "/v1/rules", reader, 200}, {"DELETE", "/v1/rules/api", reader, 403}, {"DELETE", "/v1/rules/api", admin, 200},
		{"GET", "/metrics", "", 200}, {"GET", "/healthz", "", 200},
	} {
		body := ""
		if s.path == "/v1/check" {
			body = alice
		}
		if got := status(s.method, s.path, s.token, body); got != s.want {
			t.Errorf("%s %s with %q: %d, want %d", s.method, s.path, s.token, got, s.want)
		}
	}
	history := ask(t, c, "GET", p.URL+"/v1/rules/history", "", "Authorization", "Bearer "+admin)
	if !strings.Contains(history.Text, `"author":"alice"`) {
		t.Errorf("the history is %s", history.Text)
	}
	if log := p.log.String(); strings.Contains(log, reader) || strings.Contains(log, admin) {
		t.Errorf("a token is in the log:\n%s", log)
	}
	if _, err := os.Stat(filepath.Join(dir, "rules.yaml")); err != nil {
		t.Error(err)
	}
}
