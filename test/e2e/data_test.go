package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// withData are the arguments of a weir with a queue that keeps its data.
func withData(more ...string) []string {
	return append([]string{"serve", "--http", "127.0.0.1:0", "--data", "data", "--queue", "mail=1000000/1s"}, more...)
}

// beginWith runs weir, and does not wait until it listens.
func beginWith(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, err := begin(exec.Command(filepath.Join(bin, "weir"), withGRPC(args)...), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// push puts work off, and reports whether weir has accepted it.
func push(t *testing.T, p *process, payload string) bool {
	a, err := try(client(t), "POST", p.URL+"/v1/queues/mail/push", fmt.Sprintf(`{"payload": %q}`, payload))
	return err == nil && a.Status == 202
}

// waiting is how much work there is.
func waiting(t *testing.T, p *process) int {
	t.Helper()
	a := ask(t, client(t), "GET", p.URL+"/v1/queues/mail", "")
	var q struct{ Ready int }
	if err := json.Unmarshal([]byte(a.Text), &q); err != nil || a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Text)
	}
	return q.Ready
}

// says is what is served under a path.
func (p *process) says(t *testing.T, path string) string {
	t.Helper()
	a := ask(t, client(t), "GET", p.URL+path, "")
	if a.Status != 200 {
		t.Fatalf("%s: %d %s", path, a.Status, a.Text)
	}
	return a.Text
}

// asides are the files that were moved out of the way.
func asides(t *testing.T, dir, file string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "data", file+".unusable-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A second weir does not get the directory of the first, and is told whose it is.
func TestDataHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, withData()...)
	if !push(t, p, "kept") {
		t.Fatal("it was not accepted")
	}
	second := beginWith(t, dir, withData("--grace", "1ms")...)
	if code := second.ends(t); code != 1 {
		t.Errorf("the second ended with %d", code)
	}
	for _, want := range []string{"--data: ", "data is in use", fmt.Sprintf("process %d", p.cmd.Process.Pid), "stop it, or use another directory"} {
		if !strings.Contains(second.log.String(), want) {
			t.Errorf("the second does not say %q:\n%s", want, second.log)
		}
	}
	if n := waiting(t, p); n != 1 {
		t.Errorf("the first has %d", n)
	}
	// Who waits for the directory can be stopped.
	third := beginWith(t, dir, withData("--grace", "1h")...)
	waitFor(t, "the wait", func() bool { return strings.Contains(third.log.String(), "waiting") })
	if code := third.stop(t); code == 0 {
		t.Errorf("who has not started ended with %d", code)
	}
}

// The new weir is started before the old one is stopped. Whatever was answered with 202
// is there afterwards.
func TestOverlappingRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := start(t, dir, withData()...)
	var accepted atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for push(t, old, "work") {
				accepted.Add(1)
			}
		})
	}
	waitFor(t, "some work", func() bool { return accepted.Load() > 20 })
	next := beginWith(t, dir, withData("--grace", "1h")...)
	waitFor(t, "the wait", func() bool { return strings.Contains(next.log.String(), "waiting") })
	before := accepted.Load()
	waitFor(t, "more work", func() bool { return accepted.Load() > before+20 })
	if code := old.stop(t); code != 0 {
		t.Errorf("the old one ended with %d:\n%s", code, old.log)
	}
	wg.Wait()
	if err := next.listens(); err != nil {
		t.Fatal(err)
	}
	if n := waiting(t, next); n != int(accepted.Load()) {
		t.Errorf("%d were accepted, and %d are there", accepted.Load(), n)
	}
}

// What cannot be read is moved aside with every byte, and is still there later.
func TestUnusableSnapshots(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string, text []byte) error{
		"cut":           func(path string, text []byte) error { return os.WriteFile(path, text[:len(text)/2], 0o600) },
		"newer version": func(path string, text []byte) error { text[8]++; return os.WriteFile(path, text, 0o600) },
		"foreign":       func(path string, _ []byte) error { return os.WriteFile(path, []byte("my thesis"), 0o600) },
		"directory": func(path string, text []byte) error {
			os.Remove(path)
			os.Mkdir(path, 0o700)
			return os.WriteFile(filepath.Join(path, "inside"), text, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "data", "queues.snapshot")
			content := func(path string) string {
				if text, err := os.ReadFile(filepath.Join(path, "inside")); err == nil {
					return string(text)
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			var found []string // what was damaged, the oldest first
			for round := range 3 {
				p := start(t, dir, withData()...)
				waitFor(t, "the move", func() bool { return len(asides(t, dir, "queues.snapshot")) == round })
				if n := waiting(t, p); n != 0 {
					t.Errorf("%d are there", n)
				}
				if metric := fmt.Sprintf("\nweir_data_unusable_files %d\n", min(round, 1)); !strings.Contains(p.says(t, "/metrics"), metric) {
					t.Errorf("there is no %s", metric)
				}
				for i, aside := range asides(t, dir, "queues.snapshot") {
					if content(aside) != found[i] {
						t.Errorf("%s has changed", aside)
					}
					if i == round-1 && (!strings.Contains(p.log.String(), filepath.Base(aside)) || !strings.Contains(p.log.String(), `"what":"queues"`)) {
						t.Errorf("the log does not mention %s", aside)
					}
				}
				for range 20 + round {
					push(t, p, "work")
				}
				if code := p.stop(t); code != 0 {
					t.Errorf("it ended with %d:\n%s", code, p.log)
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(path, text); err != nil {
					t.Fatal(err)
				}
				found = append(found, content(path))
			}
		})
	}
}

// A weir that cannot start leaves everything as it was, what is damaged, too.
func TestFailedStartSavesNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	p := start(t, dir, withData()...)
	push(t, p, "work")
	p.stop(t)
	write(t, filepath.Join(dir, "data"), "counters.snapshot", "damaged")
	type state struct {
		info os.FileInfo
		text string
	}
	look := func() map[string]state {
		names, err := filepath.Glob(filepath.Join(dir, "data", "*.snapshot*"))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]state{}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = state{info, string(text)}
		}
		return all
	}
	before := look()
	if len(before) != 4 {
		t.Fatalf("there are %d files", len(before))
	}
	failing := beginWith(t, dir, withData("--http", taken.Addr().String())...)
	if code := failing.ends(t); code != 1 || !strings.Contains(failing.log.String(), "is already in use") {
		t.Errorf("it ended with %d:\n%s", code, failing.log)
	}
	after := look()
	for name, b := range before {
		if a, there := after[name]; !there || a.text != b.text || !os.SameFile(a.info, b.info) || !a.info.ModTime().Equal(b.info.ModTime()) {
			t.Errorf("%s has changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there were %d files, and are %d", len(before), len(after))
	}
}

// A disk that is full is a metric, a word at /readyz and an exit code, and what was saved
// before stays.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, withData()...)
	if !push(t, p, "small") {
		t.Fatal("it was not accepted")
	}
	p.stop(t)
	// No file may become larger than this, so that what is small can still be saved.
	command := "ulimit -f 32; exec " + filepath.Join(bin, "weir") + ` "$@"`
	p, err := begin(exec.Command("sh", append([]string{"-c", command, "sh"}, withGRPC(withData("--snapshot-every", "1s"))...)...), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if err := p.listens(); err != nil {
		t.Fatal(err)
	}
	if got := p.says(t, "/readyz"); got != "ready\n" {
		t.Errorf("while all is well, /readyz says %q", got)
	}
	waitFor(t, "the first save", func() bool {
		return strings.Contains(p.says(t, "/metrics"), `weir_data_saved_timestamp_seconds{file="queues.snapshot"}`)
	})
	if !push(t, p, strings.Repeat("large", 10_000)) {
		t.Fatal("it was not accepted")
	}
	waitFor(t, "the readiness detail", func() bool {
		return strings.HasPrefix(p.says(t, "/readyz"), "ready\n--data: queues.snapshot could not be saved: ")
	})
	for want, there := range map[string]bool{
		`weir_data_save_failures_total{file="queues.snapshot"} `:     true,
		`weir_data_save_failures_total{file="queues.snapshot"} 0`:    false,
		`weir_data_save_failures_total{file="keys.snapshot"} 0`:      true,
		`weir_data_saved_timestamp_seconds{file="queues.snapshot"} `: true,
	} {
		if strings.Contains(p.says(t, "/metrics"), "\n"+want) != there {
			t.Errorf("%s in /metrics is not %v", want, there)
		}
	}
	if code := p.stop(t); code != 1 || !strings.Contains(p.log.String(), "weir: --data: queues.snapshot could not be saved: ") {
		t.Errorf("it ended with %d:\n%s", code, p.log)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("it left %s", left)
	}
	p = start(t, dir, withData()...)
	if n := waiting(t, p); n != 1 {
		t.Errorf("of what was saved before, %d are there", n)
	}
}

// A save that fails is tried again, and then all is well.
func TestSavingRecovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, withData("--snapshot-every", "1s")...)
	path := filepath.Join(dir, "data", "keys.snapshot")
	waitFor(t, "the first save", func() bool { return os.Remove(path) == nil })
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the failure", func() bool { return strings.Contains(p.says(t, "/readyz"), "keys.snapshot") })
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the recovery", func() bool { return p.says(t, "/readyz") == "ready\n" })
	if code := p.stop(t); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.log)
	}
}

// leftovers are files that were being written.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "data", "*.tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A weir that is killed while it saves leaves a part of a file. The next one removes it,
// and nothing that is not its own.
func TestKilledWhileSaving(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := withData("--snapshot-every", "1s")
	large := strings.Repeat("x", 60_000)
	p := start(t, dir, args...)
	if !push(t, p, "saved") {
		t.Fatal("it was not accepted")
	}
	p.stop(t)
	var left []string
	for round := 0; len(left) == 0; round++ {
		if round == 20 {
			t.Fatal("it never left anything")
		}
		p := start(t, dir, args...)
		for range 200 {
			push(t, p, large)
		}
		for deadline := time.Now().Add(30 * time.Second); len(left) == 0 && time.Now().Before(deadline); {
			left = slices.DeleteFunc(leftovers(t, dir), func(name string) bool { return !strings.Contains(name, "queues.snapshot.") })
		}
		p.cmd.Process.Signal(syscall.SIGKILL)
		p.ends(t)
		left = leftovers(t, dir) // unless it was in place just then
	}
	foreign := []string{"notes.tmp", "photo.123.tmp", "keys.snapshot.mine.tmp", "keys.snapshot.unusable-20260101T000000Z"}
	for _, name := range foreign {
		write(t, filepath.Join(dir, "data"), name, "not weir's")
	}
	p = start(t, dir, withData()...)
	for _, name := range left {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, "data", name)); err != nil {
			t.Error(err)
		}
	}
	if n := waiting(t, p); n < 1 {
		t.Errorf("nothing that was saved is there")
	}
}
