//go:build unix

package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What is no regular file in the place of one that weir reads again does not stop it: it says so, goes
// on with what it had, reads the file when it is one again, and ends when it is told to.
func TestPipesInsteadOfFiles(t *testing.T) {
	const rules = "rules: [{id: a, key: user, limit: 5/1m}]"
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ci read "+strings.Repeat("a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, log := prepared(t, Options{TokenFile: tokens}, rules)
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	within := func(what string, do func() error) error {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- do() }()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			t.Fatalf("%s hangs", what)
			return nil
		}
	}
	for _, path := range []string{o.Rules, o.TokenFile} {
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		err = within("reload", func() error { return a.Reload(t.Context()) })
		waitFor(t, "the error", func() bool { // of a file that is watched, the log has it
			return strings.Contains(fmt.Sprint(err, log), path+": it is not a regular file")
		})
		if table, _ := a.engine.Rules(); table.Find("a") == nil {
			t.Error("the rules are gone")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := within("reload", func() error { return a.Reload(t.Context()) }); err != nil {
			t.Error(err)
		}
	}
	if err := within("stop", func() error { return a.Stop(context.Background()) }); err != nil {
		t.Error(err)
	}
}
