package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
)

// writerPath is set in the environment of a process that is there to be killed.
const writerPath = "WEIR_TEST_WRITER"

// writeForever writes version after version, and says so of each that was accepted. A
// path that begins with a colon is written to without compiling, which takes most of
// the time, in which there is nothing to be cut short.
func writeForever(path string) {
	// The parent that should kill it may have been killed itself.
	time.AfterFunc(time.Minute, func() { os.Exit(1) })
	path, fast := strings.CutPrefix(path, ":")
	r, err := Open(path, Options{})
	write := r.Write
	if fast {
		write = r.writeFast
	}
	for err == nil {
		var v repo.Version
		if v, err = r.Current(context.Background()); err != nil {
			break
		}
		v, err = write(context.Background(), repo.Draft{Base: v.Number, Author: "writer", Summary: "next", Source: numbered(v.Number + 1)})
		var conflict *repo.ConflictError
		if errors.As(err, &conflict) {
			err = nil
			continue
		}
		fmt.Println(v.Number)
	}
	fmt.Println(err)
	os.Exit(1)
}

// writeFast is Write for what is known to be good.
func (r *Repository) writeFast(ctx context.Context, d repo.Draft) (repo.Version, error) {
	unlock, err := r.lock(ctx)
	if err != nil {
		return repo.Version{}, err
	}
	defer unlock()
	if f := r.reconcile(ctx); f.version.Number != d.Base {
		return repo.Version{}, &repo.ConflictError{Base: d.Base, Current: *f.version}
	}
	next, err := d.Ready(r.Reader, nil)
	if err != nil {
		return next, err
	}
	return r.install(r.archive.(*folder), next)
}

// numbered is the document of a version, long enough to be seen half-written.
func numbered(n int64) []byte {
	text := fmt.Appendf(nil, "# %d\nrules:\n  - {id: a, key: ip, limit: %d/1m}\n#", n, n)
	return append(text, bytes.Repeat([]byte{'0' + byte(n%10)}, 12<<10)...)
}

// A process writes, or two at once, and is killed at any instant, again and again. What
// is found is always a whole document that was offered, no older than what was accepted,
// with a history without gaps.
func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, numbered(1))
	accepted, written := int64(1), 0
	begin := time.Now()
	rounds, cut := 0, 0
	for ; rounds < 20 || rounds < 110 && time.Since(begin) < 20*time.Second; rounds++ {
		delay := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
		writers := 1
		if rounds%4 == 0 {
			writers = 2
		}
		written -= int(accepted)
		if rounds%2 == 0 {
			accepted = max(accepted, killWriters(t, writers, path, delay))
		} else {
			accepted = max(accepted, killWriters(t, writers, ":"+path, delay))
		}
		written += int(accepted)
		if _, err := os.Stat(path + ".history/next.yaml"); err == nil {
			cut++
		}
		accepted = checkAfterCrash(t, path, accepted)
		if t.Failed() {
			t.Fatalf("in round %d, after %v", rounds, delay)
		}
	}
	t.Logf("%d rounds, %d versions, %d of them cut short", rounds, written, cut)
	if written < rounds {
		t.Errorf("only %d versions were written in %d rounds, which proves little", written, rounds)
	}
	checkArchive(t, path, accepted)
}

// killWriters returns the last version that was accepted.
func killWriters(t *testing.T, number int, path string, delay time.Duration) int64 {
	t.Helper()
	var outs []*bufio.Reader
	var writers []*exec.Cmd
	for range number {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), writerPath+"="+path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		writers, outs = append(writers, c), append(outs, bufio.NewReader(out))
	}
	first, err := outs[0].ReadString('\n') // it is on its way
	if err != nil {
		t.Errorf("a writer ended: %v", err)
	}
	time.Sleep(delay) // not to wait for anything, but to kill at any instant
	for _, c := range writers {
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	accepted := numberOf(t, first)
	for i, out := range outs {
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				break
			}
			accepted = max(accepted, numberOf(t, line))
		}
		_ = writers[i].Wait() // killed, as it says
	}
	return accepted
}

func numberOf(t *testing.T, line string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		t.Errorf("a writer said %q", line)
	}
	return n
}

// checkAfterCrash returns the version that is found.
func checkAfterCrash(t *testing.T, path string, accepted int64) int64 {
	t.Helper()
	text := read(t, path)
	head, _, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseInt(strings.TrimPrefix(head, "# "), 10, 64)
	if err != nil || text != string(numbered(n)) {
		t.Fatalf("the document is none that was offered: %d bytes, %q", len(text), head)
	}
	// Each writer may have been killed before it could say so.
	if n < accepted || n > accepted+2 {
		t.Errorf("the document is version %d, and %d was accepted", n, accepted)
	}
	r := open(t, path, Options{})
	v := current(t, r)
	if v.Number != n || string(v.Source) != text || n > 1 && v.Author != "writer" {
		t.Errorf("the document %d is version %d, by %s", n, v.Number, v.Author)
	}
	history, err := r.History(t.Context())
	if err != nil || len(history) != int(min(n, repo.MaxHistory)) {
		t.Fatalf("the history of %d has %d versions, %v", n, len(history), err)
	}
	for i, h := range history {
		if h.Number != n-int64(i) || h.Number > 1 && h.Author != "writer" {
			t.Errorf("the history has version %d of %s in place %d", h.Number, h.Author, i)
		}
	}
	return n
}

// checkArchive checks every version that is kept.
func checkArchive(t *testing.T, path string, last int64) {
	t.Helper()
	r := open(t, path, Options{})
	for n := last; n > max(0, last-repo.MaxHistory); n-- {
		v, err := r.Find(t.Context(), n)
		if err != nil || string(v.Source) != string(numbered(n)) {
			t.Errorf("Find(%d) = version %d, %v", n, v.Number, err)
		}
	}
}
