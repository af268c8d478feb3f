package lint

import (
	"flag"
	"fmt"
	"go/doc"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of CONTRIBUTING.md, and the code blocks and links of Chinese pages")

// CONTRIBUTING.md has the layout as a table, so that it is said once.
func TestContributing(t *testing.T) {
	const page, begin, end = "../../CONTRIBUTING.md", "<!-- the layout -->\n", "<!-- end of the layout -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the layout", page)
	}
	want := table(t)
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is out of date; run go test ./internal/lint -update", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table(t *testing.T) string {
	files, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	about := map[string]string{} // what the packages say of themselves
	for _, f := range files {
		if f.ast.Doc != nil {
			about[f.dir] = new(doc.Package).Synopsis(f.ast.Doc.Text())
		}
	}
	var b strings.Builder
	b.WriteString("| place | what it is | for |\n|---|---|---|\n")
	for i, l := range layout {
		if !slices.Contains(l.packages, "internal/...") {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(l.packages, "`, `"), l.why, user(l.packages[0]))
			continue
		}
		var tools []string
		for dir := range about {
			if on, _ := floor(dir); on == i {
				tools = append(tools, dir)
			}
		}
		slices.Sort(tools)
		for _, dir := range tools {
			said, _ := strings.CutPrefix(about[dir], "Package "+path.Base(dir)+" ")
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", dir, strings.TrimSuffix(said, "."), user(dir))
		}
	}
	return b.String()
}

// user is whom a package is for.
func user(dir string) string {
	dir = strings.TrimSuffix(dir, "/...")
	first, _, _ := strings.Cut(dir, "/")
	name := path.Base(dir)
	switch {
	case first == "examples":
		return "to copy"
	case first == "scripts":
		return "maintainers"
	case first == "deploy":
		return "operators"
	case first == "test" || strings.HasPrefix(name, "test") || name == "lint" || name == "docquote" || name == "compile" || name == "scenario":
		return "tests"
	case first == "internal" || first == "cmd" || first == "web" || name == "script":
		return "the program"
	}
	return "users"
}
