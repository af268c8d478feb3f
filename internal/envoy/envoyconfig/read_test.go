package envoyconfig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestGolden holds every file of testdata/read against what is beside it: the problems
// as a person sees them, and what was understood. A directory is several files.
func TestGolden(t *testing.T) {
	found, err := filepath.Glob("testdata/read/*")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, path := range found {
		if strings.HasSuffix(path, ".golden") {
			continue
		}
		cases++
		config, problems := Read(filesOf(t, path), Options{MergeDomains: strings.Contains(path, "merge")})
		golden(t, path+".golden", problems.String()+dump(config))
		if (config == nil) != (problems.Err() != nil) {
			t.Errorf("%s: a configuration is %v, and the error %v", path, config != nil, problems.Err())
		}
	}
	if cases < 20 {
		t.Fatalf("only %d files were found", cases)
	}
}

// filesOf are a file, or those of a directory.
func filesOf(t testing.TB, path string) (files []File) {
	t.Helper()
	paths := []string{path}
	if info, err := os.Stat(path); err != nil {
		t.Fatal(err)
	} else if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*")); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range paths {
		source, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{Name: filepath.Base(p), Source: source})
	}
	return files
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s\n(go test ./internal/envoy/envoyconfig -update writes it again)", path, got, want)
	}
}

// dump writes a configuration for people.
func dump(c *Config) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("---\n")
	for _, name := range c.Domains() {
		fmt.Fprintf(&b, "%s\n", name)
		dumpLevel(&b, &c.domains[name].root, "  ")
	}
	return b.String()
}

func dumpLevel(b *strings.Builder, l *level, indent string) {
	for _, next := range l.all {
		fmt.Fprintf(b, "%s%s", indent, next.composite)
		if next.parts != nil {
			b.WriteString(" pattern")
		}
		if next.shared {
			b.WriteString(" shared")
		}
		if n := next.node; n != nil {
			dumpNode(b, n)
		}
		b.WriteByte('\n')
		dumpLevel(b, &next.below, indent+"  ")
	}
}

func dumpNode(b *strings.Builder, n *Node) {
	for _, l := range n.Limits {
		if l.N == 0 {
			fmt.Fprintf(b, ", 0 a %s", l.Unit)
			continue
		}
		c, err := l.compile(false, false)
		if err != nil {
			fmt.Fprintf(b, ", %v", err)
			continue
		}
		fmt.Fprintf(b, ", %s (%s)", c.Limit(), l.Unit)
		if l.Name != "" {
			fmt.Fprintf(b, " called %s", l.Name)
		}
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"unlimited", n.Unlimited}, {"shadow", n.Shadow}, {"quota", n.Quota}} {
		if flag.set {
			fmt.Fprintf(b, ", %s", flag.name)
		}
	}
	if n.Failure.Failure != FailOpen {
		fmt.Fprintf(b, ", else %s", n.Failure)
	}
	if n.Replaces != nil {
		fmt.Fprintf(b, ", replaces %v", n.Replaces)
	}
	if n.Metadata != nil {
		fmt.Fprintf(b, ", metadata %v", n.Metadata)
	}
}

// An error names its place, and the others are counted.
func TestInvalidError(t *testing.T) {
	for source, want := range map[string]string{
		"domain: a\ndescriptors: [{key: k, rate_limit: {unit: fortnight, requests_per_unit: 1}}]": "envoy: a.yaml:2:43: error: unit: \"fortnight\" is unknown; write second, minute, hour, day, week, month, year, or a period such as 10s",
		"domain: a\ndescriptors: [{key: ''}, {kee: b}]":                                           "envoy: a.yaml:2:21: error: key: required; write the key of the entry that Envoy sends, such as remote_address, and 2 more errors",
		"descriptors: []": "envoy: a.yaml:1:1: error: domain: required; write the domain that Envoy's rate limit filter sends",
	} {
		_, problems := Read([]File{{Name: "a.yaml", Source: []byte(source)}}, Options{})
		if err := Invalid(problems); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", source, err, want)
		}
	}
}

// Files are bounded in what they may say, and so is what is said of them.
func TestBounds(t *testing.T) {
	many := "domain: a\ndescriptors:\n" + strings.Repeat("- {key: ''}\n", maxProblems+5)
	_, problems := Read([]File{{Name: "a.yaml", Source: []byte(many)}}, Options{})
	if len(problems) != maxProblems+1 || !strings.Contains(problems.String(), "there are 5 more errors") {
		t.Errorf("%d problems", len(problems))
	}
	var b strings.Builder
	b.WriteString("domain: a\ndescriptors:\n")
	for i := range MaxDescriptors + 1 {
		fmt.Fprintf(&b, "- key: k%d\n", i)
	}
	if _, problems := Read([]File{{Name: "a.yaml", Source: []byte(b.String())}}, Options{}); len(problems) != 1 || problems.Err() == nil {
		t.Errorf("%d descriptors: %v", MaxDescriptors+1, problems)
	}
}

func FuzzRead(f *testing.F) {
	found, err := filepath.Glob("testdata/read/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range found {
		source, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		config, problems := Read([]File{{Name: "a.yaml", Source: source}}, Options{})
		if (config == nil) != (problems.Err() != nil) {
			t.Fatalf("a configuration is %v, and the error %v", config != nil, problems.Err())
		}
		if config == nil {
			return
		}
		set, _ := config.Rules()
		for i := range set.Rules {
			if set.Rules[i].ID == "" {
				t.Error("a rule has no id")
			}
		}
	})
}
