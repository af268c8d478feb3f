package grpclimit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// buffer is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// Each mistake is told once, with its code and what to do.
func TestTell(t *testing.T) {
	trusted := Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	elsewhere := Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		name    string
		options Options
		over    network
		rules   int
		twice   bool
		pairs   []string
		want    string // the code, or none
	}{
		{"all is well", Options{}, tcp, 1, false, nil, ""},
		{"a proxy's metadata", Options{}, tcp, 1, false, []string{"x-forwarded-for", "192.0.2.1"}, "G001"},
		{"a proxy's other metadata", Options{}, tcp, 1, false, []string{"forwarded", "for=192.0.2.1"}, "G001"},
		{"a client's forged metadata", elsewhere, tcp, 1, false, []string{"x-forwarded-for", "192.0.2.1"}, ""},
		{"twice in the chain", Options{}, tcp, 1, true, nil, "G002"},
		{"metadata that disagree", trusted, tcp, 1, false, []string{"x-forwarded-for", "192.0.2.1", "forwarded", "for=192.0.2.2"}, "G003"},
		{"no address", Options{}, pipe, 1, false, nil, "G004"},
		{"too many limits", Options{}, tcp, 65, false, nil, "G005"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log buffer
			c.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			rules := "rules:"
			for i := range c.rules {
				rules += fmt.Sprintf("\n  - {id: r%d, key: global, limit: %d/1h}", i, 10_000+i)
			}
			b := benchOn(t, rules, c.options, c.over, nil)
			if c.twice {
				b.serve(t, c.over, grpc.ChainUnaryInterceptor(b.Unary(), b.Unary()))
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					a := b.call(context.Background(), append(c.pairs, "x-api-key", "secret")...)
					if code := status.Code(a.err); (code == codes.InvalidArgument) != (c.want == "G005") || code != codes.OK && c.want != "G005" {
						t.Error(a.err)
					}
				})
			}
			all.Wait()
			lines := strings.Count(log.String(), "\n")
			switch {
			case c.want == "" && lines > 0:
				t.Errorf("told: %s", log.String())
			case c.want != "" && (lines != 1 || !strings.Contains(log.String(), "code="+c.want) || !strings.Contains(log.String(), "remedy=")):
				t.Errorf("want %s, told: %s", c.want, log.String())
			}
			if strings.Contains(log.String(), "secret") {
				t.Error("the log has a key")
			}
		})
	}
}

// docs/reference/middleware.md explains every code.
func TestCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/middleware.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		if line := fmt.Sprintf("| %s | %s | %s |\n", m.Code, m.What, m.Remedy); !strings.Contains(string(doc), line) {
			t.Errorf("docs/reference/middleware.md lacks the line\n%s", line)
		}
	}
}
