package replay

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file of a log, compressed if its name says so.
func write(t *testing.T, name, log string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		f.WriteString(log)
		return path
	}
	z := gzip.NewWriter(f)
	z.Write([]byte(log))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompressed(t *testing.T) {
	log, err := Open(write(t, "access.log.gz", strings.Repeat(line(0, "192.0.2.1"), 5000)))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var last Progress
	o := Options{Table: compile(t, perAddress), Progress: func(p Progress) { last = p }}
	r, err := Run(context.Background(), o, log)
	if err != nil || r.Requests != 5000 || r.Denied != 4998 {
		t.Errorf("%v: %+v", err, r)
	}
	if last.Size == 0 || last.Read != last.Size {
		t.Errorf("%+v at the end", last)
	}
}

// What a log that is cut off has is replayed, and the rest is spoken of.
func TestCompressedAndCutOff(t *testing.T) {
	path := write(t, "access.log.gz", strings.Repeat(line(0, "192.0.2.1"), 200_000))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-200); err != nil {
		t.Fatal(err)
	}
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, err := Run(context.Background(), Options{Table: compile(t, perAddress)}, log)
	if err != nil || r.Requests < 100_000 || r.Requests >= 200_000 || !strings.Contains(strings.Join(r.Notes, " "), "could not be read to its end: unexpected EOF") {
		t.Errorf("%v: %d requests, %q", err, r.Requests, r.Notes)
	}
}

func TestOpenErrors(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.log"): "no such file",
		t.TempDir():                            "is a directory",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	path := write(t, "plain.log", "hello")
	if err := os.Rename(path, path+".gz"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path + ".gz"); err == nil || !strings.Contains(err.Error(), "cannot be decompressed as gzip") {
		t.Error(err)
	}
}
