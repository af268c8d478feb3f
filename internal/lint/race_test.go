package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testFunction = regexp.MustCompile(`(?ms)^func Test(\w+)\(.*?^}`)

// What a test leaves out with the race detector, make test does without it.
func TestUnraced(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(form string) []string {
		found := regexp.MustCompile(form).FindSubmatch(makefile)
		if found == nil {
			t.Fatalf("the Makefile has no %s", form)
		}
		return strings.FieldsFunc(string(found[1]), func(r rune) bool { return r == '|' || r == ' ' })
	}
	names, dirs := listed(`(?m)^UNRACED := \^Test\((.*)\)\$\$$`), listed(`(?m)^UNRACED_IN := (.*)$`)
	found := map[string]bool{}
	err = filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "node_modules" || d.Name() == "lint" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		dir := strings.Replace(filepath.ToSlash(filepath.Dir(name)), "../..", ".", 1)
		for _, test := range testFunction.FindAllSubmatch(text, -1) {
			if !strings.Contains(string(test[0]), "testkit.Race") {
				continue
			}
			if !slices.Contains(names, string(test[1])) || !slices.Contains(dirs, dir) {
				t.Errorf("add %s of %s to UNRACED and UNRACED_IN in the Makefile", test[1], dir)
			}
			found[string(test[1])], found[dir] = true, true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range slices.Concat(names, dirs) {
		if !found[word] {
			t.Errorf("the Makefile runs %s without the race detector, where that makes no difference", word)
		}
	}
}
