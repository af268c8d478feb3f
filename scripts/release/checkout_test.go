package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the checkout under test.
const root = "../.."

// sources lists the files of the module, with slashes: not what was built or installed, and no
// modules of their own, which Go leaves out of a module as well.
func sources(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case entry.IsDir():
			_, none := os.Stat(filepath.Join(name, "go.mod"))
			apart := none == nil && relative != "."
			if apart || slices.Contains([]string{".git", "bin", "web/node_modules"}, relative) || strings.HasSuffix(relative, "testdata/rapid") {
				return fs.SkipDir
			}
		case entry.Type().IsRegular() && relative != ".git":
			names = append(names, relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// read returns a file of the checkout.
func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// checkout copies the module into a repository of its own, with one commit, tagged v0.1.0.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range sources(t) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, read(t, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, dir)
	git(t, dir, "tag", "v0.1.0")
	return dir
}

// commit makes the first commit of a repository. It is the same on every machine.
func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message", "all")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(),
		"GIT_AUTHOR_NAME=weir", "GIT_AUTHOR_EMAIL=weir@example.com", "GIT_AUTHOR_DATE=2026-11-16T12:00:00Z",
		"GIT_COMMITTER_NAME=weir", "GIT_COMMITTER_EMAIL=weir@example.com", "GIT_COMMITTER_DATE=2026-11-16T12:00:00Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
