package ruleedit_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// TestTidy holds documents of testdata/format against what is beside them.
func TestTidy(t *testing.T) {
	files, err := filepath.Glob("testdata/format/*.[yj]*[ln]")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		source := readFile(t, file)
		got, problems := ruleedit.Tidy(filepath.Base(file), source)
		if problems.Err() == nil {
			checkFormatted(t, file, source, got)
		}
		all := problems.String() + "---\n" + string(got)
		golden := file + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(all), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := string(readFile(t, golden)); all != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, all, want)
		}
	}
}

// Every good document can be formatted, and only once.
func TestTidyKeepsWhatItSays(t *testing.T) {
	for _, file := range append(documents(t), examples(t)...) {
		source := readFile(t, file)
		got, problems := ruleedit.Tidy(file, source)
		if (got == nil) != (problems.Err() != nil) {
			t.Errorf("%s: %d bytes, %v", file, len(got), problems)
		}
		if got != nil {
			checkFormatted(t, file, source, got)
		}
	}
}

func checkFormatted(t testing.TB, name string, source, got []byte) {
	t.Helper()
	before, _ := rule.Parse(name, source)
	after, problems := rule.Parse(name, got)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("%s: formatted, it says something else: %v\n%s", name, problems, got)
	}
	if again, _ := ruleedit.Tidy(name, got); string(again) != string(got) {
		t.Errorf("%s: formatted again as\n%s\nwas\n%s", name, again, got)
	}
	if !slices.Equal(comments(source), comments(got)) {
		t.Errorf("%s: comments were %q, are %q", name, comments(source), comments(got))
	}
}

func comments(text []byte) (all []string) {
	for line := range strings.Lines(string(text)) {
		if _, comment, found := strings.Cut(line, "#"); found {
			all = append(all, strings.TrimSpace(comment))
		}
	}
	slices.Sort(all)
	return all
}
