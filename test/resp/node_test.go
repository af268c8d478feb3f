package resp

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// script is embedded, so that go test sees when it changes.
//
//go:embed node/clients.mjs
var script string

func TestNode(t *testing.T) {
	testkit.InstallNode(t, "node")
	_, port, err := net.SplitHostPort(serve(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--input-type=module", "--eval", script, port, token)
	cmd.Dir, cmd.Stderr = "node", t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 {
		t.Errorf("%d clients have answered: %s", len(lines), out)
	}
	for _, line := range lines {
		var got struct {
			Client  string
			Version int
			said
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		t.Run(fmt.Sprintf("%s/%d", got.Client, got.Version), func(t *testing.T) { expect(t, got.said, got.Version) })
	}
}
