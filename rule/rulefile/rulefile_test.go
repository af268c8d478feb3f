package rulefile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is a log that a test can read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.b.String(), text)
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules: [{id: a, key: ip, limit: 5/1m}]")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log journal
	e, err := rulefile.Open(ctx, path, engine.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	inForce := func(id string) bool {
		table, _ := e.Rules()
		rules := table.Rules()
		return len(rules) == 1 && rules[0].Rule.ID == id
	}
	wait := func(what string, happened func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s did not happen", what)
			}
		}
	}
	if !inForce("a") {
		t.Error("the rules of the file are not in force")
	}
	write("rules: [{id: b, key: ip, limit: none at all}]")
	wait("a complaint", func() bool { return log.has("could not load the rules") })
	if !inForce("a") {
		t.Error("a mistake took the rules out of force")
	}
	write("rules: [{id: c, key: ip, limit: 5/1m}]")
	wait("the change", func() bool { return inForce("c") })
	wait("the news", func() bool { return log.has("rules in force") })

	var invalid *rule.InvalidError
	write("rules: [{}]")
	if _, err := rulefile.Open(ctx, path, engine.Options{}); !errors.As(err, &invalid) {
		t.Errorf("of a file with mistakes: %v", err)
	}
}
