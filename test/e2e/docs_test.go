package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/expression" // the docs have rules with expressions
	_ "github.com/weirhq/weir/rule/rulefile"
)

// A block in a document that is preceded by a line such as
//
//	<!-- weir simulate --limit 100/1m -->
//
// is what that command prints. Besides weir there are "file PATH", which is the
// file, and "example NAME", which is the body of that example in the root
// package, or "example FILE NAME", which is the body of that function. The test runs them all; make generate writes them again.
var quoted = regexp.MustCompile("(?s)<!-- ((?:weir|file|example) [^\n]*) -->\n```([a-z]*)\n(.*?)```\n")

func TestDocs(t *testing.T) {
	documents := []string{"../../README.md", "../../CONTRIBUTING.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			documents = append(documents, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, document := range documents {
		src, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		written := quoted.ReplaceAllStringFunc(string(src), func(block string) string {
			blocks++
			part := quoted.FindStringSubmatch(block)
			command, language, got := part[1], part[2], part[3]
			want, err := quote(command)
			if err != nil {
				t.Errorf("%s: %s: %v", document, command, err)
				return block
			}
			if got != want && !*update {
				t.Errorf("%s: what stands below %q is out of date; run make generate", document, command)
			}
			return fmt.Sprintf("<!-- %s -->\n```%s\n%s```\n", command, language, want)
		})
		if *update && written != string(src) {
			if err := os.WriteFile(document, []byte(written), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if blocks < 5 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

// quote returns what belongs into a block.
func quote(command string) (string, error) {
	verb, rest, _ := strings.Cut(command, " ")
	switch verb {
	case "file":
		text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(rest)))
		return string(text), err
	case "example":
		return example(rest)
	}
	cmd := exec.Command(filepath.Join(bin, "weir"), words(rest)...)
	cmd.Dir = "../.." // the files that it names are the repository's
	out, err := cmd.Output()
	return string(out), err
}

// Every document of rules that the docs show can be used, and has nothing doubtful.
func TestDocsRules(t *testing.T) {
	src, err := os.ReadFile("../../docs/reference/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(string(src), -1)
	if len(blocks) < 4 {
		t.Errorf("only %d documents were found", len(blocks))
	}
	for _, block := range blocks {
		set, problems := rule.Parse("rules.md", []byte(block[1]))
		if len(problems) > 0 {
			t.Errorf("%s\n%s", problems, block[1])
			continue
		}
		if _, err := rule.Compile(set, rule.Options{}); err != nil {
			t.Errorf("%v\n%s", err, block[1])
		}
	}
}

// words splits a command line, where quotes hold words together.
func words(s string) []string {
	var all []string
	for _, part := range regexp.MustCompile(`"[^"]*"|[^ ]+`).FindAllString(s, -1) {
		all = append(all, strings.Trim(part, `"`))
	}
	return all
}

// example returns the body of a function, without what it prints: an example of the root
// package, or, after the name of a file, a function there.
func example(name string) (string, error) {
	file, function, elsewhere := strings.Cut(name, " ")
	if !elsewhere {
		file, function = "example_test.go", "Example"+name
	}
	src, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		return "", err
	}
	_, body, ok := strings.Cut(string(src), "\nfunc "+function+"(")
	if !ok {
		return "", fmt.Errorf("there is no %s in %s", function, file)
	}
	_, body, _ = strings.Cut(body, " {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	body, _, _ = strings.Cut(body+"\n", "\t// Output:")
	var b strings.Builder
	for line := range strings.Lines(body) {
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return b.String(), nil
}
