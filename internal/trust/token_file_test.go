package trust

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadFile(t *testing.T) {
	path := write(t, "alice admin "+alice+"\n")
	l, err := ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := l.Find(alice); !found {
		t.Error("alice is not found")
	}
	if _, err := ReadTokens(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	bad := write(t, "alice admin short")
	if _, err := ReadTokens(bad); err == nil || !strings.HasPrefix(err.Error(), bad+": token: line 1: ") {
		t.Errorf("a bad file: %v", err)
	}
	if _, err := ReadTokens(write(t, strings.Repeat("#\n", maxTokenFile))); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestReadOne(t *testing.T) {
	for _, c := range []struct{ content, want, wrong string }{
		{alice + "\n", alice, ""},
		{"alice read " + alice, alice, ""},
		{"alice check rules=a charge clients=b " + alice, alice, ""},
		{"alice read " + alice + "\nbob read " + bob, "", "the file has several tokens"},
		{"", "", "there is no token"},
		{"short", "", "fewer than 16 characters"},
	} {
		got, err := ReadToken(write(t, c.content))
		if got != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("ReadOne of %q = %q, %v", c.content, got, err)
		}
	}
}

func TestExposed(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // has no permission bits
	}
	path := write(t, alice)
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got := Exposed(path); got != want {
			t.Errorf("Exposed with mode %o = %v, want %v", mode, got, want)
		}
	}
	if Exposed(path + ".none") {
		t.Error("a file that is not there is exposed")
	}
}
