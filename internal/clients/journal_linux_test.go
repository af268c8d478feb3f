package clients

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// A journal that was replaced, but whose new name may not be on the disk, is read again before the next change. So what is acknowledged
// then fits what is in the file, and not what was known before.
func TestRewriteFailsAfterRename(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 { // for whom all folders can be read
		const nobody = 65534
		for _, folder := range []string{filepath.Dir(dir), dir} {
			testkit.OK(t, os.Chown(folder, nobody, nobody))
		}
		runtime.LockOSThread()
		syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0) // of this thread
		t.Cleanup(func() {
			syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
			runtime.UnlockOSThread()
		})
	}
	path := filepath.Join(dir, "clients.ndjson")
	j := NewJournal(path, slog.Default())
	defer j.Close()
	r := New(Options{Store: j})
	apply(t, r, put(t, `{"client": "org:acme"}`))
	for i := 0; j.lines+MaxChanges <= 2*j.live+10_000; i++ {
		var changes []Change
		for n := range MaxChanges {
			changes = append(changes, put(t, fmt.Sprintf(`{"client": "user:%d", "tier": "t%d"}`, n, i)))
		}
		apply(t, r, changes...)
	}
	var changes []Change
	for n := range MaxChanges {
		changes = append(changes, Change{Client: put(t, fmt.Sprintf(`{"client": "user:%d"}`, n)).Client, Delete: true})
	}
	changes[0].Client.Name = "org:acme"
	testkit.OK(t, os.Chmod(dir, 0o300)) // names can be changed, but the folder cannot be opened to sync it
	if _, err := r.Apply(t.Context(), "ann", changes); reason(err) != Unavailable || r.Count() != MaxChanges+1 {
		t.Errorf("the rewrite: %v; there are %d clients", err, r.Count())
	}
	testkit.OK(t, os.Chmod(dir, 0o700))
	if got := apply(t, r, put(t, `{"client": "user:new", "parent": "org:acme"}`)); reason(got[0].Err) != NoParent {
		t.Errorf("a change after it: %+v", got[0])
	}
	apply(t, r, put(t, `{"client": "user:other"}`))
	again := New(Options{Store: NewJournal(path, slog.Default())})
	if look(t, again); text(again) != text(r) || again.Count() != 2 {
		t.Errorf("there are %s, and after a restart %s", text(r), text(again))
	}
}
