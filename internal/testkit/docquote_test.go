package testkit

import (
	"os"
	"strings"
	"testing"
)

const source = "package x\n\nfunc ExampleOne() {\n\tprepare()\n\n\tif true {\n\t\tact()\n\t}\n\t// Output: 1\n}\n\nfunc ExampleTwo() {\n\ttwo()\n}\n"

// complaints is a testing.TB that remembers what it is told.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Helper()                        {}
func (c *complaints) Errorf(format string, _ ...any) { c.all = append(c.all, format) }

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	block := func(name, body string) string { return "<!-- x " + name + " -->\n```go\n" + body + "```\n" }
	one, two := block("ExampleOne", "if true {\n\tact()\n}\n"), block("ExampleTwo", "two()\n")
	for name, c := range map[string]struct {
		page   string
		least  int
		errors int
	}{
		"right":         {one + two, 2, 0},
		"too few":       {one + two, 3, 1},
		"not all":       {one, 1, 1},
		"out of date":   {one + block("ExampleTwo", "three()\n"), 2, 1},
		"no function":   {one + two + block("ExampleThree", ""), 2, 1},
		"nothing shown": {"# words\n", 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			for file, text := range map[string]string{"example_test.go": source, "page.md": c.page} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			told := &complaints{TB: t}
			page := Page{File: "page.md", Word: "x", Least: c.least, All: true, After: "prepare()\n\n"}
			CheckQuotes(told, page)
			if len(told.all) != c.errors {
				t.Errorf("%d complaints, want %d: %s", len(told.all), c.errors, strings.Join(told.all, "\n"))
			}
		})
	}
	const page = "page.md"
	if err := os.WriteFile(page, []byte(one+block("ExampleTwo", "three()\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	CheckQuotes(t, Page{File: page, Word: "x", Least: 2, All: true, After: "prepare()\n\n", Update: true})
	if got, err := os.ReadFile(page); err != nil || string(got) != one+two {
		t.Errorf("it wrote %s, %v", got, err)
	}
}
