package envoyconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/watch"
)

// file is a configuration whose limit tells which one it is.
func file(n int) string {
	return fmt.Sprintf("domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: %d}}]\n", n)
}

// number tells which configuration it is; 0 is none.
func number(c *Config) uint32 {
	if c == nil {
		return 0
	}
	return c.Domain("d").Find(query("k=v")).Limits[0].N
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// saveAside replaces a file atomically, as a careful editor does.
func saveAside(t *testing.T, path, text string) {
	t.Helper()
	save(t, path+"~", text)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// link makes a link, or turns it in one step.
func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path+"~"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text, want string
	}{
		{"", "", "there is no *.yaml file in " + dir},
		{"notes.txt", "hello", "there is no *.yaml file in " + dir},
		{".hidden.yaml", "hello", "there is no *.yaml file in " + dir},
		{"bad.yaml", "domain: a\nx: 1", "bad.yaml:2:1: error: the file has no field \"x\""},
		{"bad.yaml", file(1), ""},
		{"more.yml", "domain: e", ""},
	} {
		if c.name != "" {
			save(t, filepath.Join(dir, c.name), c.text)
		}
		d, err := Open(dir, Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if err == nil && number(d.Config()) != 1 {
			t.Errorf("%s: %d", c.name, number(d.Config()))
		}
	}
	if _, err := Open(filepath.Join(dir, "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.yaml")
	save(t, path, file(1))
	d, err := Open(filepath.Dir(path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	save(t, path, file(2))
	if err := d.Reload(); err != nil || number(d.Config()) != 2 {
		t.Errorf("%d, %v", number(d.Config()), err)
	}
	save(t, path, "domain: [")
	var invalid *InvalidError
	if err := d.Reload(); !errors.As(err, &invalid) || number(d.Config()) != 2 {
		t.Errorf("%d, %v", number(d.Config()), err)
	}
	save(t, path, file(0))
	if err := d.Reload(); err != nil || len(d.Warnings()) != 1 {
		t.Errorf("%v, %v", d.Warnings(), err)
	}
}

// told is what Watch says.
type told struct {
	number uint32
	err    error
}

// follow watches a directory, and returns what is told.
func follow(t *testing.T, path string, o Options) (*Dir, <-chan told) {
	t.Helper()
	d, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return d, followed(t, d)
}

// followed is follow for who has the directory.
func followed(t *testing.T, d *Dir) <-chan told {
	d.pause = func(ctx context.Context) error { return ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	news, done := make(chan told), make(chan error, 1)
	go func() {
		done <- d.Watch(ctx, func(c *Config, err error) {
			select {
			case news <- told{number(c), err}:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch ended: %v", err)
		}
	})
	return news
}

// expect waits for news of a number. What is told in between, of a file half-written,
// must be the number before.
func expect(t *testing.T, news <-chan told, before, n uint32) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case got := <-news:
			if got.err == nil && got.number == n {
				return
			}
			if got.number != before {
				t.Fatalf("%d, %v, want %d", got.number, got.err, n)
			}
		case <-timeout:
			t.Fatalf("there was no call for %d", n)
		}
	}
}

// expectTrouble waits for news of trouble, while a number stays.
func expectTrouble(t *testing.T, news <-chan told, n uint32, words string) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case got := <-news:
			if got.number != n {
				t.Fatalf("%d, %v, want %d and trouble", got.number, got.err, n)
			}
			if got.err != nil && strings.Contains(got.err.Error(), words) {
				return
			}
		case <-timeout:
			t.Fatalf("there was no call for %s", words)
		}
	}
}

// Changes are seen with the help of the system, and without.
func TestWatch(t *testing.T) {
	for name, o := range map[string]Options{
		"told": {watch: watch.Options{Poll: time.Hour}}, "poll": {watch: watch.Options{PollOnly: true, Poll: 10 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("files", func(t *testing.T) { watchFiles(t, o) })
			t.Run("kubernetes", func(t *testing.T) { watchKubernetes(t, o) })
			t.Run("goruntime", func(t *testing.T) { watchGoruntime(t, o) })
		})
	}
}

// watchFiles is an editor at work.
func watchFiles(t *testing.T, o Options) {
	dir := filepath.Join(t.TempDir(), "config")
	path := filepath.Join(dir, "d.yaml")
	save(t, path, file(1))
	d, news := follow(t, dir, o)
	save(t, path, file(2))
	expect(t, news, 1, 2)
	save(t, path, "domain: [")
	expectTrouble(t, news, 2, "d.yaml:")
	save(t, filepath.Join(dir, "other.yaml"), "domain: e")
	if err := d.Reload(); err == nil {
		t.Error("Reload finds nothing wrong")
	}
	saveAside(t, path, file(3))
	expect(t, news, 2, 3)
	save(t, path, file(4))
	expect(t, news, 3, 4)
	if err := os.Rename(dir, dir+"~"); err != nil {
		t.Fatal(err)
	}
	if o.watch.PollOnly { // the system tells of what is in a directory only
		expectTrouble(t, news, 4, "no such file")
	}
}

// watchKubernetes is a ConfigMap that is replaced: the files are links through ..data.
func watchKubernetes(t *testing.T, o Options) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "..1", "d.yaml"), file(1))
	link(t, "..1", filepath.Join(dir, "..data"))
	link(t, "..data/d.yaml", filepath.Join(dir, "d.yaml"))
	_, news := follow(t, dir, o)
	for i := 2; i < 5; i++ {
		save(t, filepath.Join(dir, fmt.Sprintf("..%d", i), "d.yaml"), file(i))
		link(t, fmt.Sprintf("..%d", i), filepath.Join(dir, "..data"))
		expect(t, news, uint32(i-1), uint32(i))
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..%d", i-1))); err != nil {
			t.Fatal(err)
		}
	}
}

// watchGoruntime is a directory that is replaced as a whole, by a link above it.
func watchGoruntime(t *testing.T, o Options) {
	root := t.TempDir()
	save(t, filepath.Join(root, "v1", "ratelimit", "config", "d.yaml"), file(1))
	link(t, "v1", filepath.Join(root, "current"))
	_, news := follow(t, filepath.Join(root, "current", "ratelimit", "config"), o)
	for i := 2; i < 5; i++ {
		save(t, filepath.Join(root, fmt.Sprintf("v%d", i), "ratelimit", "config", "d.yaml"), file(i))
		link(t, filepath.Join(root, fmt.Sprintf("v%d", i)), filepath.Join(root, "current"))
		expect(t, news, uint32(i-1), uint32(i))
	}
}

// The same trouble is told once, and its end, too, however often it is looked at.
func TestWatchTellsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.yaml")
	save(t, path, file(1))
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(filepath.Dir(path), Options{watch: watch.Options{PollOnly: true}})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		go func() {
			_ = d.Watch(t.Context(), func(c *Config, err error) { told = append(told, fmt.Sprint(number(c), err != nil)) })
		}()
		for _, text := range []string{"domain: [", file(1), "domain: ]", file(2)} {
			saveAside(t, path, text)
			time.Sleep(20 * time.Second) // by a clock that is set forward
			synctest.Wait()
		}
		if got, want := fmt.Sprint(told), "[1 true 1 false 1 true 2 false]"; got != want {
			t.Errorf("%s was told, want %s", got, want)
		}
	})
}

// Half a file is not used, even if it is a good one.
func TestWatchWaitsForTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.yaml")
	save(t, path, file(1))
	d, err := Open(filepath.Dir(path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	d.pause = func(context.Context) error {
		if writes++; writes < 5 {
			save(t, path, file(10+writes))
		}
		return nil
	}
	save(t, path, file(10))
	if err := d.look(t.Context()); err != nil || number(d.Config()) != 14 || writes != 5 {
		t.Errorf("after %d writes %d is used, %v", writes, number(d.Config()), err)
	}
	d.pause = func(context.Context) error {
		writes++
		save(t, path, file(10+writes))
		return nil
	}
	save(t, path, file(10))
	if err := d.look(t.Context()); !errors.Is(err, errRestless) || number(d.Config()) != 14 {
		t.Errorf("of files that change all the time, %d is used, %v", number(d.Config()), err)
	}
}
