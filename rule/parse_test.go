package rule_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestGolden holds every document of testdata/parse against what is beside it: the
// problems as a person sees them, and the set in its one spelling.
func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range goldenFiles(t) {
		source := readFile(t, file)
		set, problems := rule.Parse(filepath.Base(file), source)
		for _, p := range problems {
			seen[p.Code] = true
			if _, found := rule.LookUp(p.Code); !found {
				t.Errorf("%s: %s is not in the table of codes", file, p.Code)
			}
		}
		got := problems.String()
		if set != nil {
			got += "---\n" + string(rule.Format(set))
			if _, err := rule.Compile(set, rule.Options{}); err != nil {
				t.Errorf("%s: what was parsed does not compile: %v", file, err)
			}
		}
		golden := file + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := string(readFile(t, golden)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s\n(go test ./rule -update writes it again)", file, got, want)
		}
		if strings.Contains(got, "s3cret") && set == nil {
			t.Errorf("%s: a secret is in a message", file)
		}
	}
	for _, c := range rule.Codes() {
		// W000 takes a thousand warnings, W015 is of package ruleedit, and W021 of package manage.
		if !seen[c.Name] && !slices.Contains([]string{"W000", "W015", "W021"}, c.Name) {
			t.Errorf("%s (%s) is in no golden file", c.Name, c.Title)
		}
	}
}

// A file whose name begins with a code has no problem of another code, but for those
// that are about several things at once.
func TestGoldenNames(t *testing.T) {
	for _, file := range goldenFiles(t) {
		code, _, _ := strings.Cut(filepath.Base(file), "-")
		if _, found := rule.LookUp(code); !found {
			continue
		}
		_, problems := rule.Parse(file, readFile(t, file))
		found := false
		for _, p := range problems {
			found = found || p.Code == code
		}
		if !found && !strings.HasSuffix(file, "W011-backed.yaml") {
			t.Errorf("%s: no problem has the code that it is named for: %v", file, problems)
		}
	}
}

func goldenFiles(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"testdata/parse/*.yaml", "testdata/parse/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 60 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(source)
}
