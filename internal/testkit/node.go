package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// InstallNode downloads the packages that the lock file in a directory lists, unless they are
// there. npm writes its own copy of the list last.
func InstallNode(t testing.TB, dir string) {
	t.Helper()
	want, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.Stat(filepath.Join(dir, "node_modules/.package-lock.json")); err == nil && !have.ModTime().Before(want.ModTime()) {
		return
	}
	cmd := exec.Command("npm", "ci", "--silent", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s: %v\n%s", dir, err, out)
	}
}
