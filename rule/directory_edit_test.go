package rule_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

// plainDirectory is the directory that is obviously right: a map, and all lines are checked after each change.
type plainDirectory map[string]rule.Client

func (p plainDirectory) put(c rule.Client) error {
	next := maps.Clone(p)
	next[c.Name] = c
	if _, known := next[c.Parent]; c.Parent != "" && !known {
		return errors.New("no parent")
	}
	for name := range next {
		kinds := map[string]bool{}
		for ; name != ""; name = next[name].Parent {
			kind, _, _ := strings.Cut(name, ":")
			if kinds[kind] || len(kinds) == rule.MaxLine {
				return errors.New("a bad line")
			}
			kinds[kind] = true
		}
	}
	p[c.Name] = c
	return nil
}

func (p plainDirectory) remove(name string) error {
	if _, known := p[name]; !known {
		return errors.New("no client")
	}
	for _, c := range p {
		if c.Parent == name {
			return errors.New("members")
		}
	}
	delete(p, name)
	return nil
}

// all are the clients of a directory, without what only the package sees.
func all(d *rule.Directory) plainDirectory {
	p := plainDirectory{}
	for c := range d.All {
		p[c.Name] = c
	}
	return p
}

// drawClient is a client of few names, so that edits meet.
func drawClient(t testing.TB, r *rand.Rand, kinds []string) rule.Client {
	name := func() string { return fmt.Sprintf("%s:%d", kinds[r.IntN(len(kinds))], r.IntN(12)) }
	text := fmt.Sprintf(`{"client": %q, "note": "n%d", "tier": "t%d"`, name(), r.IntN(1000), r.IntN(9))
	if r.IntN(4) > 0 {
		text += fmt.Sprintf(`, "parent": %q`, name())
	}
	if r.IntN(3) == 0 {
		text += fmt.Sprintf(`, "limits": {"api": ["%d/1m", "1000/1h"], "other": "unlimited"}, "starts": %d`, 1+r.IntN(20), 1+r.IntN(5))
	}
	c := client(t, text+"}")
	c.Stamp = rule.Stamp{Serial: r.Uint64(), By: fmt.Sprint("by", r.IntN(5)), At: time.UnixMilli(r.Int64N(1e12)).UTC()}
	return c
}

// Edits do what they do to a map, whether or not the kinds of clients are in an order, and older versions stay as they were.
func TestDirectoryEdits(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		kinds := strings.Fields("api_key user team org attr:customer a b c")[:2+r.IntN(7)]
		d, plain := rule.NewDirectory(), plainDirectory{}
		old, was := d, all(d)
		for range 150 {
			e := d.Edit()
			for range 1 + r.IntN(8) {
				c := drawClient(t, r, kinds)
				var got, want error
				if r.IntN(4) == 0 {
					got, want = e.Remove(c.Name), plain.remove(c.Name)
				} else {
					got, want = e.Put(c), plain.put(c)
				}
				if (got == nil) != (want == nil) {
					t.Fatalf("seed %d: %+v: %v, want %v", seed, c, got, want)
				}
			}
			d = e.Directory()
			if d.Len() != len(plain) {
				t.Fatalf("seed %d: %d clients, want %d", seed, d.Len(), len(plain))
			}
			if r.IntN(10) == 0 {
				if !reflect.DeepEqual(all(old), was) {
					t.Fatalf("seed %d: an older version has changed", seed)
				}
				old, was = d, all(d)
			}
		}
		for name, want := range plain {
			line := d.Line(name)
			if len(line) == 0 || fmt.Sprintf("%+v", line[0].Stamp) != fmt.Sprintf("%+v", want.Stamp) || string(rule.ClientToJSON(&line[0])) != string(rule.ClientToJSON(&want)) {
				t.Fatalf("seed %d: %v, want %+v", seed, line, want)
			}
		}
	}
}

// What clients no longer have takes no memory for ever: tiers, notes, limits and kinds.
func TestDirectoryForgets(t *testing.T) {
	var d *rule.Directory
	size := heldBy(func() any {
		d = rule.NewDirectory()
		for i := 0; i < 30_000; {
			e := d.Edit()
			for range 30 {
				c := client(t, fmt.Sprintf(`{"client": "user:%d", "note": "%d %s", "limits": {"api": "%d/1m"}}`, i, i, strings.Repeat("x", 100), i+1))
				if err := e.Put(c); err != nil {
					t.Fatal(err)
				}
				if i++; i < 2 {
					continue
				}
				if err := e.Remove(fmt.Sprintf("user:%d", i-2)); err != nil {
					t.Fatal(err)
				}
			}
			d = e.Directory()
		}
		return d
	}, func() { d = nil })
	if size < 10_000 || size > 10<<20 {
		t.Errorf("a directory that has one client holds %d bytes", size)
	}
	d = rule.NewDirectory()
	for i := range 200 {
		e := d.Edit()
		if err := e.Put(client(t, fmt.Sprintf(`{"client": "kind%d:x"}`, i))); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			_ = e.Remove(fmt.Sprintf("kind%d:x", i-1))
		}
		d = e.Directory()
	}
}

// heldBy is how many bytes less there are when a value is dropped.
func heldBy(hold func() any, drop func()) int64 {
	var before, after runtime.MemStats
	v := hold()
	runtime.GC()
	runtime.ReadMemStats(&before)
	runtime.KeepAlive(v)
	drop()
	v = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(before.HeapAlloc) - int64(after.HeapAlloc)
}

func client(t testing.TB, text string) rule.Client {
	t.Helper()
	c, problems := rule.ReadClient("", []byte(text))
	if len(problems) > 0 {
		t.Fatal(text, problems)
	}
	return c
}

// A client that is written and read again is the same, whatever its name is.
func TestClientToJSON(t *testing.T) {
	for _, text := range []string{
		`{"client": "user:a\\|b\\\\c", "parent": "org:x y"}`, `{"client": "api_key:secret"}`, `{"client": "attr:cust:omer:42", "blocked": true}`,
		`{"client": "user:ann", "zone": "Europe/Berlin", "starts": 15, "limits": {"a": {"limit": "100/1m", "burst": 5}, "b": "unlimited", "c": {"concurrency": 4}, "d": ["1/1s", "9/1h"]}, "note": "ünïcode \"7\""}`,
	} {
		c := client(t, text)
		again, problems := rule.ReadClient("", rule.ClientToJSON(&c))
		if len(problems) > 0 || !reflect.DeepEqual(again, c) {
			t.Errorf("%s became %s, and that %+v %v", text, rule.ClientToJSON(&c), again, problems)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	var text strings.Builder
	const n = 1 << 20
	for i := range n {
		fmt.Fprintf(&text, `{"client": "user:%d", "parent": "org:%d"}`+"\n", i, i/1000)
	}
	for i := range n/1000 + 1 {
		fmt.Fprintf(&text, `{"client": "org:%d", "tier": "pro"}`+"\n", i)
	}
	d := directory(b, "clients.ndjson", text.String())
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = fmt.Sprint(i * 16)
	}
	var req rule.Request
	for i := 0; b.Loop(); i++ {
		req.User = names[i%len(names)]
		if !req.Resolve(d, false).Known {
			b.Fatal("unknown")
		}
	}
}

func BenchmarkDirectoryEdit(b *testing.B) {
	d := rule.NewDirectory()
	e := d.Edit()
	for i := range 1_000_000 {
		if err := e.Put(rule.Client{Name: fmt.Sprint("user:", i)}); err != nil {
			b.Fatal(err)
		}
	}
	d = e.Directory()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := d.Edit()
		if err := e.Put(rule.Client{Name: fmt.Sprint("user:", i*7919%1_000_000), Tier: "pro"}); err != nil {
			b.Fatal(err)
		}
		d = e.Directory()
	}
}

// With as many kinds as there may be, only one client of another kind is looked for room in vain; and one that is removed makes room.
func TestDirectoryFullKinds(t *testing.T) {
	e := rule.NewDirectory().Edit()
	put := func(i int) error { return e.Put(client(t, fmt.Sprintf(`{"client": "attr:kind%d:a"}`, i))) }
	for i := range 64 {
		if err := put(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		if err := put(100 + i); err == nil {
			t.Fatalf("kind %d is accepted", 100+i)
		}
	}
	if err := e.Remove("attr:kind7:a"); err != nil {
		t.Fatal(err)
	}
	if err := put(200); err != nil {
		t.Error(err)
	}
}
