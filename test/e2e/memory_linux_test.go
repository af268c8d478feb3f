package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

// raw sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (raw) Unmarshal(_ []byte, _ any) error { return nil }
func (raw) Name() string                    { return "proto" }

// A process to which hostile messages and documents are sent, many at once, stays small.
func TestMemoryUnderAttack(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", "rules: [{id: all, key: ip, limit: 100/1s}]")
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	conn, err := grpc.NewClient("passthrough:///"+p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	many := func(n int, do func()) {
		var wg sync.WaitGroup
		for range n {
			wg.Go(do)
		}
		wg.Wait()
	}
	before := resident(t, p.cmd.Process.Pid, "VmRSS")

	requests := bytes.Repeat([]byte{0x0a, 0}, 2_090_000)
	for want, options := range map[codes.Code][]grpc.CallOption{
		codes.Unimplemented: {grpc.UseCompressor(gzip.Name)}, codes.ResourceExhausted: nil,
	} {
		many(16, func() {
			err := conn.Invoke(ctx, "/weir.v1.Limiter/CheckMany", requests, new([]byte), append(options, grpc.ForceCodec(raw{}))...)
			if status.Code(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	messages := resident(t, p.cmd.Process.Pid, "VmHWM") - before
	t.Logf("messages: %d MiB", messages>>20)
	if messages > 96<<20 {
		t.Errorf("messages took %d MiB", messages>>20)
	}

	document := "{" + strings.Repeat("a,", 2_090_000) + "}"
	many(8, func() {
		resp, err := http.Post(p.URL+"/v1/rules/validate", "application/yaml", strings.NewReader(document))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("answered %s", resp.Status)
		}
	})
	documents := resident(t, p.cmd.Process.Pid, "VmHWM") - before
	t.Logf("and documents: %d MiB", documents>>20)
	if documents > 256<<20 {
		t.Errorf("documents took %d MiB", documents>>20)
	}
}

// resident is how much memory a process has, or had at most, in bytes.
func resident(t *testing.T, pid int, what string) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), what+":")
	if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%d kB", &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}
