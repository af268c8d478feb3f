//go:build unix

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// With only an Envoy configuration, weir creates no rules file, does not warn that
// nothing is limited, and needs no write permission.
func TestEnvoyAlone(t *testing.T) {
	config := t.TempDir()
	write(t, config, "edge.yaml", edge)
	show(t, filepath.Join(config, "edge.yaml"))
	dir := filepath.Join(t.TempDir(), "unwritable")
	makeDir(t, dir)
	show(t, dir)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	p := startAsNobody(t, dir, "serve", "--http", "127.0.0.1:0", "--envoy-config", config)
	e := newEnvoy(t, p)
	for i, want := range []string{"OK", "OK", "OVER_LIMIT"} {
		if got := e.ask("remote_address=192.0.2.1"); got != want {
			t.Errorf("request %d: %s, want %s", i+1, got, want)
		}
	}
	c := client(t)
	if a := ask(t, c, "GET", p.URL+"/v1/rules?format=yaml", ""); a.Status != http.StatusOK || a.Text != "rules: []\n" {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if a := ask(t, c, "POST", p.URL+"/v1/rules", "{id: new, key: ip, limit: 5/1m}", "If-Match", "*"); a.Status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if text := p.log.String(); strings.Contains(text, "there are no rules") || !strings.Contains(text, `"domains":1,"descriptors":3`) {
		t.Error(text)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}

	// A file of rules that is there holds, also beside Envoy's.
	home := t.TempDir()
	write(t, home, "rules.yaml", perUser)
	p = start(t, home, "serve", "--http", "127.0.0.1:0", "--envoy-config", config)
	if a := ask(t, c, "GET", p.URL+"/v1/rules/api", ""); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	// And without Envoy, or if it is asked for, one is made.
	for i, args := range [][]string{{}, {"--envoy-config", config, "--rules", "rules.yaml"}} {
		home := t.TempDir()
		start(t, home, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
		if _, err := os.Stat(filepath.Join(home, "rules.yaml")); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// startAsNobody starts weir as a user without write permission: as root, the user
// nobody.
func startAsNobody(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	if os.Geteuid() != 0 {
		return start(t, dir, args...)
	}
	show(t, filepath.Join(bin, "weir"))
	return startAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, dir, args...)
}

// show lets everybody come to a file, and read it.
func show(t *testing.T, path string) {
	t.Helper()
	for ; path != filepath.Clean(os.TempDir()) && path != filepath.Dir(path); path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
