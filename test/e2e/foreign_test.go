package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A client that is not grpc-go gets the same answers.
func TestForeignClient(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("foreign")); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	run("npm", "ci", "--silent", "--no-audit", "--no-fund")
	proto, err := filepath.Abs("../../sdk/proto/weir/v1/weir.proto")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "rules.yaml", "rules: [{id: posts, match: {attributes: {action: post}}, key: user, algorithm: sliding_log, limit: 2/1h}]\n")
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	got := run("node", "check.mjs", p.GRPC, proto, "alice", "3")
	want := `{"allowed":true,"reason":"REASON_LIMITS","rule":"posts","remaining":1}
{"allowed":true,"reason":"REASON_LIMITS","rule":"posts","remaining":0}
{"allowed":false,"reason":"REASON_LIMITS","rule":"posts","remaining":0}
INVALID_ARGUMENT
`
	if got != want {
		t.Errorf("it got\n%swant\n%s", got, want)
	}
}
