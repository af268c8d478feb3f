package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// foreign are words that are other people's: an error of the kernel, the name of a
// library beside which weir is measured, a field of OpenAI's answers.
var foreign = regexp.MustCompile(`^refusal$|connection refused|refuses? connections|\[throttled\]\([^)]*\)|throttled( \(|/)|rate limited, throttled|\| throttled \||throttled(,| and| 和|、)|` + "`throttled`")

// What users read has no word that the glossary replaces: documents, the API, metrics, flags,
// messages, the dashboard, and what go doc shows.
func TestWords(t *testing.T) {
	root := "../.."
	glossary, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	bannedIn := notThese(t, string(glossary))
	texts := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			switch name {
			case ".git", "bin", "web/dist", "test", "web/src/api":
				return filepath.SkipDir
			}
			if d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		var lines []located
		switch {
		case name == "docs/glossary.md" || name == "docs/decisions/0040-words.md" || name == "CHANGELOG.md": // they quote the words
			return nil
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".pb.go"):
			lines, err = spoken(path, name)
		case strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".proto"), name == "web/src/words/en.ts",
			strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "testdata"), strings.HasPrefix(name, "examples/") && strings.HasSuffix(name, ".txt"):
			lines, err = written(path)
		}
		for _, l := range lines {
			texts++
			for _, m := range bannedIn(l.text) {
				t.Errorf("%s:%d: %q; docs/glossary.md has the word for it: %s", name, l.line, m, strings.TrimSpace(l.text))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 5000 {
		t.Errorf("only %d texts were found", texts)
	}
}

// notThese finds the words in the last column of the glossary's tables. Almost all texts have
// none, which takes no regular expression to see.
func notThese(t *testing.T, glossary string) func(text string) []string {
	t.Helper()
	var words, all []string
	for line := range strings.Lines(glossary) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[4]) == "not" {
			continue
		}
		for word := range strings.SplitSeq(cells[4], ",") {
			if word = strings.TrimSpace(word); word != "" {
				words = append(words, strings.ToLower(word))
				all = append(all, regexp.QuoteMeta(word))
			}
		}
	}
	if len(all) < 15 {
		t.Fatalf("the glossary replaces only %d words", len(all))
	}
	banned := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	return func(text string) []string {
		lower := strings.ToLower(text)
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) }) {
			return nil
		}
		return banned.FindAllString(foreign.ReplaceAllString(text, ""), -1)
	}
}

// located is a text and its line.
type located struct {
	line int
	text string
}

func written(path string) ([]located, error) {
	text, err := os.ReadFile(path)
	var all []located
	for i, line := range strings.Split(string(text), "\n") {
		all = append(all, located{i + 1, line})
	}
	return all, err
}

// spoken are the texts of a Go file that users see: what it says in strings, and, where
// the package is public, the names that it exports and what go doc shows of them.
func spoken(path, name string) ([]located, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []located
	say := func(at token.Pos, text string) { all = append(all, located{files.Position(at).Line, text}) }
	public := !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/") && !strings.Contains(name, "/internal/")
	comment := func(groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if g != nil {
				for _, c := range g.List {
					say(c.Pos(), c.Text)
				}
			}
		}
	}
	named := func(id *ast.Ident) {
		if id.IsExported() {
			say(id.Pos(), camel.ReplaceAllString(id.Name, "$1 $2"))
		}
	}
	if public {
		comment(f.Doc)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				say(n.Pos(), strings.ReplaceAll(text, "_", " "))
			}
		case *ast.GenDecl:
			if public {
				comment(n.Doc)
			}
		case *ast.FuncDecl:
			if public && n.Name.IsExported() {
				named(n.Name)
				comment(n.Doc)
			}
		case *ast.TypeSpec:
			if public && n.Name.IsExported() {
				named(n.Name)
				comment(n.Doc, n.Comment)
				return true
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				if public && id.IsExported() {
					named(id)
					comment(n.Doc, n.Comment)
				}
			}
		case *ast.Field:
			for _, id := range n.Names {
				if public && id.IsExported() {
					named(id)
					comment(n.Doc, n.Comment)
				}
			}
		}
		return true
	})
	return all, nil
}

// camel finds where a word of a name ends.
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)
