//go:build unix

package disk

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file is not read, unless this process inherited it.
func TestOpenIrregular(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file, good := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file"), filepath.Join(dir, "good")
	for _, err := range []error{
		syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link), os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, good),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{pipe, link, "/dev/zero", "/dev/null"} {
		if _, err := ReadFile(path, 10, "test"); err == nil || !strings.HasPrefix(err.Error(), "read "+path+": it is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := ReadFile(good, 10, "test"); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		io.WriteString(w, "piped")
	}()
	if text, err := ReadFile(fmt.Sprint("/dev/fd/", r.Fd()), 10, "test"); err != nil || string(text) != "piped" {
		t.Errorf("%q, %v", text, err)
	}
}
