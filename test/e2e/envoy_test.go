package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

// edge has no window that begins at a full hour, which may be just now.
const edge = `domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: hour, requests_per_unit: 2, algorithm: sliding_log}
  - key: path
    value: /login
    descriptors:
      - key: remote_address
        rate_limit: {unit: hour, requests_per_unit: 1, algorithm: sliding_log}
`

// envoy asks as Envoy does.
type envoy struct {
	t      *testing.T
	conn   *grpc.ClientConn
	limits ratelimit.RateLimitServiceClient
	health healthpb.HealthClient
}

func newEnvoy(t *testing.T, p *process) *envoy {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &envoy{t, conn, ratelimit.NewRateLimitServiceClient(conn), healthpb.NewHealthClient(conn)}
}

// ask is the answer to one descriptor, written key=value,….
func (e *envoy) ask(entries string) string {
	e.t.Helper()
	d := &common.RateLimitDescriptor{}
	for entry := range strings.SplitSeq(entries, ",") {
		key, value, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	answer, err := e.limits.ShouldRateLimit(e.t.Context(), &ratelimit.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{d}})
	if err != nil {
		return status.Code(err).String() + ": " + status.Convert(err).Message()
	}
	return answer.OverallCode.String()
}

// serving is what the health says of a service.
func (e *envoy) serving(service string) string {
	e.t.Helper()
	answer, err := e.health.Check(e.t.Context(), &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		return status.Code(err).String()
	}
	return answer.Status.String()
}

// weir starts even if the files cannot be used: Envoy gets an error, as from
// envoyproxy/ratelimit, until they are corrected.
func TestEnvoyStartsWithoutFiles(t *testing.T) {
	c := client(t)
	for name, prepare := range map[string]func(t *testing.T, config string){
		"missing": func(*testing.T, string) {},
		"empty":   func(t *testing.T, config string) { makeDir(t, config) },
		"bad": func(t *testing.T, config string) {
			makeDir(t, config)
			write(t, config, "edge.yaml", "domain: edge\ndescriptors: [{kee: x}]\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config := filepath.Join(dir, "config")
			prepare(t, config)
			args := []string{"serve", "--http", "127.0.0.1:0", "--envoy-config", config}
			if p, err := launch(dir, os.Environ(), append(args, "--envoy-require-config")...); err == nil {
				p.kill()
				t.Error("it starts although the configuration is required")
			} else if !strings.Contains(err.Error(), "--envoy-config: ") {
				t.Error(err)
			}
			p, careful := start(t, dir, args...), start(t, dir, append(args, "--envoy-ready-with-config")...)
			e, f := newEnvoy(t, p), newEnvoy(t, careful)
			if got := e.ask("remote_address=192.0.2.1"); !strings.HasPrefix(got, codes.Unknown.String()+": no rate limit configuration loaded") {
				t.Error(got)
			}
			if got := ask(t, c, "POST", p.URL+"/json", `{"domain": "edge", "descriptors": [{"entries": [{"key": "remote_address"}]}]}`); got.Status != http.StatusServiceUnavailable {
				t.Errorf("%d %s", got.Status, got.Text)
			}
			if got := ask(t, c, "GET", p.URL+"/healthcheck", ""); got.Status != http.StatusOK || got.Text != "OK" || e.serving("ratelimit") != "SERVING" {
				t.Errorf("%d %s, %s", got.Status, got.Text, e.serving("ratelimit"))
			}
			if got := ask(t, c, "GET", careful.URL+"/healthcheck", ""); got.Status != http.StatusInternalServerError || got.Text != "" || f.serving("ratelimit") != "NOT_SERVING" {
				t.Errorf("%d %s, %s", got.Status, got.Text, f.serving("ratelimit"))
			}
			if got := ask(t, c, "GET", careful.URL+"/readyz", ""); got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Text, "No Envoy configuration is loaded") {
				t.Errorf("%d %s", got.Status, got.Text)
			}
			if got := ask(t, c, "GET", p.URL+"/rlconfig", ""); got.Status != http.StatusServiceUnavailable {
				t.Errorf("%d %s", got.Status, got.Text)
			}
			waitFor(t, "the complaint", func() bool { return strings.Contains(p.log.String(), "no Envoy configuration is loaded") })

			makeDir(t, config)
			write(t, config, "edge.yaml", strings.ReplaceAll(edge, ", algorithm: sliding_log", ""))
			waitFor(t, "the configuration", func() bool { return e.ask("remote_address=192.0.2.1") == "OK" })
			waitFor(t, "health", func() bool { return f.serving("ratelimit") == "SERVING" && f.serving("") == "SERVING" })
			waitFor(t, "the log", func() bool { return strings.Contains(p.log.String(), `"domains":1,"descriptors":3`) })
			if got := ask(t, c, "GET", careful.URL+"/healthcheck", ""); got.Status != http.StatusOK {
				t.Errorf("%d %s", got.Status, got.Text)
			}
			if got := ask(t, c, "GET", p.URL+"/metrics", "").Text; !strings.Contains(got, "\nweir_rules_last_reload_successful 1\n") || !strings.Contains(got, "\nweir_rules_reload_failures_total ") {
				t.Errorf("the metrics do not say that all is well")
			}
			const want = "edge.remote_address: unit=HOUR requests_per_unit=2, shadow_mode: false, quota_mode: false\n" +
				"edge.path_/login.remote_address: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: false\n"
			if got := ask(t, c, "GET", p.URL+"/rlconfig", ""); got.Status != http.StatusOK || got.Text != want {
				t.Errorf("%d %s", got.Status, got.Text)
			}
		})
	}
}

func makeDir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// While calls are in flight, health checks see that weir is stopping.
func TestEnvoyDrains(t *testing.T) {
	config := t.TempDir()
	write(t, config, "edge.yaml", edge)
	p := start(t, t.TempDir(), "serve", "--http", "127.0.0.1:0", "--envoy-config", config, "--grace", "50s")
	e := newEnvoy(t, p)
	call, err := reflection.NewServerReflectionClient(e.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	question := &reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}
	if err := errors.Join(call.Send(question), second(call.Recv())); err != nil {
		t.Fatal(err)
	}
	c := client(t)
	health := func() answer { return ask(t, c, "GET", p.URL+"/healthcheck", "") }
	if a := health(); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Text)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	waitFor(t, "the end", func() bool { return health().Status == http.StatusInternalServerError })
	if a := ask(t, c, "GET", p.URL+"/readyz", ""); a.Status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if err := errors.Join(call.Send(question), second(call.Recv()), call.CloseSend()); err != nil {
		t.Errorf("a call that was under way was cut off: %v", err)
	}
	waitFor(t, "the exit", func() bool {
		select {
		case <-p.exited:
			return true
		default:
			return false
		}
	})
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

func second[T any](_ T, err error) error { return err }

// Statistics, metrics and weir top name the descriptors of the files, and no value that a
// request brought.
func TestEnvoyIsCountedByDescriptor(t *testing.T) {
	config, dir := t.TempDir(), t.TempDir()
	write(t, config, "edge.yaml", edge)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--envoy-config", config)
	e := newEnvoy(t, p)
	for range 3 {
		e.ask("remote_address=192.0.2.1")
	}
	for i := range 50 {
		e.ask(fmt.Sprintf("path=/login,remote_address=192.0.2.%d", i))
	}
	c := client(t)
	const all, login = "envoy:edge.remote_address", "envoy:edge.path_/login.remote_address"
	var summary struct {
		Rules []struct {
			Rule            string
			Allowed, Denied int
		}
	}
	waitFor(t, "the statistics", func() bool {
		if err := json.Unmarshal([]byte(ask(t, c, "GET", p.URL+"/v1/stats/summary", "").Text), &summary); err != nil {
			t.Fatal(err)
		}
		return len(summary.Rules) == 2 && summary.Rules[0].Allowed == 50 && summary.Rules[1].Denied == 1
	})
	if summary.Rules[0].Rule != login || summary.Rules[1].Rule != all {
		t.Errorf("%+v", summary)
	}
	metrics := ask(t, c, "GET", p.URL+"/metrics", "").Text
	for _, want := range []string{
		`weir_decisions_total{outcome="allowed",rule="` + login + `"} 50`,
		`weir_decisions_total{outcome="denied",rule="` + all + `"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(metrics, "192.0.2.") || strings.Contains(metrics, `rule="(other)"`) {
		t.Error("the metrics contain what clients sent, or nothing")
	}
	var top string
	waitFor(t, "weir top", func() bool { // which shows seconds that are over
		out, err := exec.Command(filepath.Join(bin, "weir"), "top", "--once", "--server", p.URL).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		top = string(out)
		return strings.Contains(top, "envoy:edge.path_/login")
	})
	if strings.Contains(top, "(other)") {
		t.Error(top)
	}
	t.Log(top)
}
