package envoy

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir/internal/testkit"
)

// program is a running weir.
type program struct {
	http, grpc string // addresses
	limits     pb.RateLimitServiceClient
	process    *testkit.Child
	log        string
}

var listens = regexp.MustCompile(`(?s)weir listens on http://(\S+) .*weir listens for gRPC on (\S+)\n`)

// serve runs the weir program, and waits until it listens.
func serve(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{log: filepath.Join(t.TempDir(), "log")}
	var err error
	p.process, err = testkit.Start(weir, append([]string{"serve", "--rules", "none", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--envoy-count-denied"}, args...), p.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.process.Kill()
		if t.Failed() {
			t.Logf("weir wrote:\n%s", p.output())
		}
	})
	p.await(t, "weir listens", func() bool {
		m := listens.FindStringSubmatch(p.output())
		if m != nil {
			p.http, p.grpc = m[1], m[2]
		}
		return m != nil
	})
	p.limits = dial(t, p.grpc)
	return p
}

func (p *program) output() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

// await waits for a condition.
func (p *program) await(t *testing.T, what string, fulfilled func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !fulfilled() {
		select {
		case <-p.process.Done():
			t.Fatalf("weir ended:\n%s", p.output())
		case <-ctx.Done():
			t.Fatalf("it did not happen that %s", what)
		case <-tick.C:
		}
	}
}

// status is of a path of the HTTP API.
func (p *program) status(t *testing.T, path string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + p.http + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
