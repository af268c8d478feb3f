package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Every answer of the gateway's own is explained, and the example is the one that runs.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*answer{noRoute, badTarget, badHost, climbing, badUpgrade, badBody, noTunnel, slowBody, bigBody, badGateway, unreachable, busy, late, loop} {
		if !strings.Contains(string(doc), fmt.Sprintf("| %d | %s |", a.status, a.detail)) {
			t.Errorf("docs/reference/gateway.md does not have: | %d | %s |", a.status, a.detail)
		}
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```go\n")
	shown, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/reference/gateway.md shows no example")
	}
	for line := range strings.Lines(shown) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(string(examples), line) {
			t.Errorf("docs/reference/gateway.md shows a line that no example has: %s", line)
		}
	}
}
