package envoyconfig

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// read is a configuration that has no problems.
func read(t testing.TB, sources ...string) *Config {
	t.Helper()
	var files []File
	for i, source := range sources {
		files = append(files, File{Name: fmt.Sprintf("%d.yaml", i), Source: []byte(source)})
	}
	config, problems := Read(files, Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return config
}

// query is a list of entries as in "a=1,b=2".
func query(list string) *Query {
	q := &Query{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(pair, "=")
		q.Entries = append(q.Entries, Entry{key, value})
	}
	return q
}

func TestFind(t *testing.T) {
	d := read(t, `
domain: edge
descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: user, value: alice, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: user, value: bob}
  - key: path
    value: /a/*
    rate_limit: {unit: day, requests_per_unit: 3}
  - key: path
    value: /a/b/*
    rate_limit: {unit: day, requests_per_unit: 4}
  - key: path
    value: /a/b/exact
    rate_limit: {unit: day, requests_per_unit: 5}
  - key: path
    value: "*/end"
    rate_limit: {unit: day, requests_per_unit: 6}
  - key: path
    value: /m/*/n/*/o
    rate_limit: {unit: day, requests_per_unit: 7}
  - key: path
    rate_limit: {unit: day, requests_per_unit: 8}
    descriptors:
      - {key: user, rate_limit: {unit: day, requests_per_unit: 9}}
  - key: deep
    value: one
    descriptors:
      - {key: user, value: alice, rate_limit: {unit: day, requests_per_unit: 10}}
  - key: deep
    descriptors:
      - {key: user, rate_limit: {unit: day, requests_per_unit: 11}}
  - {key: a_b, value: c, rate_limit: {unit: day, requests_per_unit: 12}}
  - {key: pre*, rate_limit: {unit: day, requests_per_unit: 13}}
`).Domain("edge")
	for list, want := range map[string]uint32{
		"user=carol": 1, "user=": 1, "user=alice": 2, "user=bob": 0, "other=x": 0,
		"path=/a/": 3, "path=/a/x": 3, "path=/a/b/c": 3, // the first pattern wins
		"path=/a/b/exact": 5, "path=/x/end": 6, "path=/end": 6, "path=/m/1/n/2/o": 7, "path=/m/n/o": 8, "path=/m//n//o": 7, "path=x": 8,
		"path=x,user=y": 9, "path=/a/x,user=y": 0, // nothing is below the pattern that was chosen
		"user=alice,user=alice": 0, "path=x,user=y,user=z": 0, "deep=one": 0,
		"deep=one,user=alice": 10, "deep=one,user=carol": 0, // no way back to the key alone
		"deep=two,user=carol": 11,
		"a=b_c":               12, "a_b=c": 12, "a_b_c=": 12, "prefix=x": 13, "pre=": 13,
	} {
		n := d.Find(query(list))
		var got uint32
		if n != nil {
			got = n.Limits[0].N
		}
		if got != want {
			t.Errorf("%s leads to %d, want %d", list, got, want)
		}
	}
	if d.Find(&Query{}) != nil {
		t.Error("no entries lead somewhere")
	}
	if read(t, "domain: a").Domain("b") != nil {
		t.Error("there is a domain of another name")
	}
}

// Values that share a limit are one to the counter, wherever the limit is.
func TestShareThreshold(t *testing.T) {
	d := read(t, `
domain: edge
descriptors:
  - key: path
    value: files*
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 1}
    descriptors:
      - {key: user, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: path, value: img*, rate_limit: {unit: day, requests_per_unit: 3}}
`).Domain("edge")
	for list, want := range map[string]string{
		"path=files/a": "edge|path=files*", "path=files": "edge|path=files*", "path=files*": "edge|path=files*",
		"path=files/a,user=x": "edge|path=files*|user=x", "path=img/a": "edge|path=img/a",
	} {
		q := query(list)
		if d.Find(q) == nil {
			t.Errorf("%s leads nowhere", list)
		}
		if got := string(d.AppendKey(nil, q.Entries)); got != want {
			t.Errorf("%s is counted as %s, want %s", list, got, want)
		}
	}
}

// naive is Find as one would explain it, over the file's own list.
func naive(t *rapid.T, l *level, entries []Entry) *Node {
	var next *branch
	composite := entries[0].Key + "_" + entries[0].Value
	for _, rank := range []func(*branch) bool{
		func(b *branch) bool { return b.composite == composite },
		func(b *branch) bool {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(b.composite), `\*`, "(?s:.*)")
			return strings.Contains(b.composite, "*") && regexp.MustCompile("^"+pattern+"$").MatchString(composite)
		},
		func(b *branch) bool { return b.composite == entries[0].Key },
	} {
		for _, b := range l.all {
			if next == nil && rank(b) {
				next = b
			}
		}
	}
	if next == nil {
		return nil
	}
	if len(entries) == 1 {
		return next.node
	}
	return naive(t, &next.below, entries[1:])
}

func drawDescriptors(t *rapid.T, b *strings.Builder, depth int) {
	used := map[string]bool{}
	for range rapid.IntRange(1, 4).Draw(t, "descriptors") {
		key := rapid.SampledFrom([]string{"a", "b", "a_b"}).Draw(t, "key")
		value := rapid.StringMatching(`[ab_*]{0,4}`).Draw(t, "value")
		composite := key
		if value != "" {
			composite += "_" + value
		}
		if used[composite] {
			continue
		}
		used[composite] = true
		fmt.Fprintf(b, "%s- {key: '%s', value: '%s', rate_limit: {unit: day, requests_per_unit: 1}", strings.Repeat("  ", depth), key, value)
		if depth < 3 && rapid.Bool().Draw(t, "deeper") {
			b.WriteString(", descriptors: [\n")
			drawFlow(t, b, depth+1)
			b.WriteString("]")
		}
		b.WriteString("}\n")
	}
}

func drawFlow(t *rapid.T, b *strings.Builder, depth int) {
	var inner strings.Builder
	drawDescriptors(t, &inner, depth)
	for line := range strings.SplitSeq(strings.TrimSpace(inner.String()), "\n") {
		b.WriteString(strings.Replace(line, "- {", "{", 1))
		if strings.HasSuffix(line, "}") {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
}

// Find agrees with the explanation of it.
func TestFindIsAsExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("domain: d\ndescriptors:\n")
		drawDescriptors(t, &b, 0)
		config, problems := Read([]File{{Name: "d.yaml", Source: []byte(b.String())}}, Options{})
		if config == nil {
			t.Fatalf("%s\n%v", b.String(), problems)
		}
		d := config.Domain("d")
		var q Query
		for range rapid.IntRange(1, 20).Draw(t, "queries") {
			q.Clear()
			for range rapid.IntRange(1, 3).Draw(t, "entries") {
				q.Entries = append(q.Entries, Entry{
					rapid.SampledFrom([]string{"a", "b", "a_b", "c"}).Draw(t, "key"),
					rapid.StringMatching(`[ab_*]{0,5}`).Draw(t, "value"),
				})
			}
			text := fmt.Sprint(q.Entries)
			want := naive(t, &d.root, q.Entries)
			if got := d.Find(&q); got != want {
				t.Fatalf("%s leads to %+v, want %+v in\n%s", text, got, want, b.String())
			}
		}
	})
}

// To find a node and to name its counter takes no memory.
func TestFindAllocates(t *testing.T) {
	d := read(t, `
domain: edge
descriptors:
  - key: path
    value: files/and/a/long/way/to/go/before/the/star/*
    share_threshold: true
    descriptors: [{key: authorization, rate_limit: {unit: day, requests_per_unit: 1}}]
`).Domain("edge")
	q, key := &Query{}, []byte(nil)
	for name, value := range map[string]string{"short": "x", "long": strings.Repeat("x", 2000)} {
		if n := testing.AllocsPerRun(100, func() {
			q.Clear()
			q.Entries = append(q.Entries, Entry{"path", "files/and/a/long/way/to/go/before/the/star/x"}, Entry{"authorization", value})
			if d.Find(q) == nil {
				t.Fatal("it leads nowhere")
			}
			key = d.AppendKey(key[:0], q.Entries)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzFind(f *testing.F) {
	source := []byte("domain: d\ndescriptors: [{key: a, value: 'x*y*', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 1}}]}]")
	f.Add(source, "a", "xay", "b", "")
	f.Add(source, "a", "", "", "|=\\")
	f.Fuzz(func(t *testing.T, source []byte, k1, v1, k2, v2 string) {
		config, _ := Read([]File{{Name: "d.yaml", Source: source}}, Options{})
		if config == nil {
			return
		}
		for _, name := range config.Domains() {
			d := config.Domain(name)
			q := &Query{Entries: []Entry{{k1, v1}, {k2, v2}}}
			d.Find(q)
			if key := d.AppendKey(nil, q.Entries); len(key) > 1024 || len(key) == 0 {
				t.Errorf("a key of %d bytes", len(key))
			}
		}
	})
}
