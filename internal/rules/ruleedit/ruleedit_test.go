package ruleedit_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestEdit holds every file of testdata/edit against what is in it: a document, what
// is done to it, and the document that comes of it.
func TestEdit(t *testing.T) {
	files, err := filepath.Glob("testdata/edit/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files were found: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, rest, _ := strings.Cut(string(text), "==== ")
			command, after, found := strings.Cut(rest, "\n")
			if !found {
				t.Fatal("the file has no line that begins with ====")
			}
			for _, eol := range []string{"\n", "\r\n"} {
				source := strings.ReplaceAll(before, "\n", eol)
				out, kept := perform(t, source, command)
				want := strings.ReplaceAll(after, "\n", eol)
				if strings.HasSuffix(command, " -> again") || before == "" {
					want = after // with line breaks of our own
				}
				if out != want {
					if *update && eol == "\n" {
						if err := os.WriteFile(file, []byte(before+"==== "+command+"\n"+out), 0o644); err != nil {
							t.Fatal(err)
						}
						continue
					}
					t.Errorf("with %q: got\n%s\nwant\n%s", eol, out, want)
				}
				if want := !strings.Contains(command, " -> lost") && !strings.HasSuffix(command, " -> again"); kept != want {
					t.Errorf("kept = %v, want %v", kept, want)
				}
			}
		})
	}
}

// perform does what a line says: "put RULE", "delete ID", or "list" and "unlist" with a
// list, a kind and a client, and perhaps "-> lost" if
// comments are, or "-> again" if the document is written again.
func perform(t *testing.T, source, command string) (string, bool) {
	t.Helper()
	command, _, _ = strings.Cut(command, " -> ")
	verb, argument, _ := strings.Cut(command, " ")
	var out []byte
	var kept bool
	var err error
	switch verb {
	case "put":
		r, problems := rule.ParseRule("", []byte(argument))
		if problems.Err() != nil {
			t.Fatal(problems.Err())
		}
		out, kept, err = put([]byte(source), r)
	case "delete":
		out, kept, err = del([]byte(source), argument)
	case "list", "unlist":
		words := strings.Fields(argument)
		out, kept, err = list([]byte(source), ruleedit.Listing{List: words[0], Kind: words[1], Client: words[2], Off: verb == "unlist"})
	default:
		t.Fatalf("%q is no verb; write put, delete, list or unlist", verb)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), kept
}

func put(source []byte, r *rule.Rule) ([]byte, bool, error) {
	return edited(source, func(d *ruleedit.Document) (*ruleedit.Document, bool, error) { return d.Put(r) })
}

func del(source []byte, id string) ([]byte, bool, error) {
	return edited(source, func(d *ruleedit.Document) (*ruleedit.Document, bool, error) { return d.Delete(id) })
}

func list(source []byte, l ruleedit.Listing) ([]byte, bool, error) {
	return edited(source, func(d *ruleedit.Document) (*ruleedit.Document, bool, error) { return d.List(l) })
}

func edited(source []byte, edit func(*ruleedit.Document) (*ruleedit.Document, bool, error)) ([]byte, bool, error) {
	d, err := new(ruleedit.Reader).Read(source)
	if err != nil {
		return nil, false, err
	}
	next, kept, err := edit(d)
	if err != nil {
		return nil, kept, err
	}
	return next.Source, kept, nil
}

// Whatever is in a document: a rule that is put into it is in it, one that is deleted
// is not, and the others are as they were.
func TestEditGolden(t *testing.T) {
	extra, problems := rule.ParseRule("", []byte(`{id: put-by-test, key: [user, "header:X-Test"], limit: 7/13s, description: "one\n # two\n"}`))
	if problems.Err() != nil {
		t.Fatal(problems.Err())
	}
	for _, file := range documents(t) {
		source := readFile(t, file)
		set, problems := rule.Parse("", source)
		if problems.Err() != nil {
			continue
		}
		out, kept, err := put(source, extra)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if kept {
			checkComments(t, source, out)
		}
		checkRules(t, file, out, append(append([]rule.Rule(nil), set.Rules...), *extra))
		for i := range set.Rules {
			changed := set.Rules[i]
			changed.Description, changed.Quota.Rates, changed.Quota.Unlimited, changed.Mode = "new", []rule.Rate{{N: 3, Period: 7e9}}, false, rule.Shadow
			rules := append([]rule.Rule(nil), set.Rules...)
			rules[i] = changed
			if out, _, err = put(source, &changed); err == nil { // else the change makes no sense
				checkRules(t, file, out, rules)
			}
			rest := append(append([]rule.Rule(nil), set.Rules[:i]...), set.Rules[i+1:]...)
			if out, _, err = del(source, set.Rules[i].ID); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			checkRules(t, file, out, rest)
		}
	}
}

func checkRules(t *testing.T, file string, source []byte, want []rule.Rule) {
	t.Helper()
	got, problems := rule.Parse("", source)
	if problems.Err() != nil {
		t.Errorf("%s: %v in\n%s", file, problems, source)
		return
	}
	if len(got.Rules)+len(want) > 0 && !reflect.DeepEqual(got.Rules, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, rule.Format(got), rule.Format(&rule.Set{Rules: want}))
	}
}

// Whatever a client is called and however a list is written, it gets on it and off again, and
// nothing else changes.
func TestListNames(t *testing.T) {
	for _, source := range []string{
		"rules: []\n", "rules: []\nblock: {user: [eve]}\n", "rules: []\nblock:\n  user:\n    - eve # since May\n    - bob\n",
		"rules: []\nblock: {user: eve}\n", "{rules: [], block: {user: [eve]}}\n", "{\"rules\": [], \"block\": {\"user\": [\"eve\"]}}\n", "",
	} {
		before, _ := rule.Parse("", []byte(source))
		for _, name := range []string{"mallory", "a: b, c]", `"`, "'", "x # y", "*", "- a", "</script>", "\u202e", "null", "7", `\`} {
			l := ruleedit.Listing{List: "block", Kind: "user", Client: name}
			on, _, err := list([]byte(source), l)
			if err != nil {
				t.Fatalf("%q on %q: %v", name, source, err)
			}
			set, problems := rule.Parse("", on)
			if problems.Err() != nil || !slices.Equal(set.Block.Users, append(slices.Clone(before.Block.Users), name)) {
				t.Fatalf("%q on %q is %q, %v", name, source, on, problems)
			}
			l.Off = true
			off, _, err := list(on, l)
			if err != nil {
				t.Fatalf("%q off %q: %v", name, on, err)
			}
			if set, _ := rule.Parse("", off); !reflect.DeepEqual(set, before) {
				t.Errorf("%q off %q is %q", name, on, off)
			}
		}
	}
}

func TestEditErrors(t *testing.T) {
	source := []byte("rules:\n  - {id: a, key: ip, limit: 5/1m}\n")
	if _, _, err := del(source, "b"); !errors.Is(err, ruleedit.ErrNoRule) {
		t.Errorf("Delete of what is not there = %v", err)
	}
	var invalid *rule.InvalidError
	if _, _, err := put(source, &rule.Rule{ID: "b"}); !errors.As(err, &invalid) {
		t.Errorf("Put of half a rule = %v", err)
	}
	twin := &rule.Rule{ID: "b", Key: []rule.Source{{Kind: rule.IP}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 5, Period: 60e9}}}}
	if _, _, err := put(source, twin); !errors.As(err, &invalid) {
		t.Errorf("Put of what does the same as another = %v", err)
	}
	if _, _, err := put([]byte("rules: ["), twin); !errors.As(err, &invalid) {
		t.Errorf("Put into what is no document = %v", err)
	}
	// What is there already is not touched, however it is written.
	same := []byte("# x\nrules: [ {key: ip,   id: b, limit: 5/60s, mode: enforce} ]")
	if out, kept, err := put(same, twin); err != nil || !kept || string(out) != string(same) {
		t.Errorf("Put of what is there = %s, %v, %v", out, kept, err)
	}
}

func TestEditKeepsBytes(t *testing.T) {
	r, problems := rule.ParseRule("", []byte("{id: b, key: user, limit: 5/1m}"))
	if problems.Err() != nil {
		t.Fatal(problems.Err())
	}
	for _, c := range []struct{ name, source, want string }{
		{"no line break at the end", "rules:\n  - {id: a, key: ip, limit: 5/1m}", "rules:\n  - {id: a, key: ip, limit: 5/1m}\n  - id: b\n    key: user\n    limit: 5/1m\n"},
		{"an editor's mark", "\xef\xbb\xbfrules:\n- {id: a, key: ip, limit: 5/1m}\n", "\xef\xbb\xbfrules:\n- {id: a, key: ip, limit: 5/1m}\n- id: b\n  key: user\n  limit: 5/1m\n"},
		{"the last field", "rules:\n  - id: b\n    key: user\n    limit: 6/1m", "rules:\n  - id: b\n    key: user\n    limit: 5/1m\n"},
	} {
		if out, kept, err := put([]byte(c.source), r); err != nil || !kept || string(out) != c.want {
			t.Errorf("%s: %q, %v, %v, want %q", c.name, out, kept, err, c.want)
		}
	}
}

// FuzzEdit puts a rule into whatever can be parsed, and takes it out again.
func FuzzEdit(f *testing.F) {
	files, err := filepath.Glob("testdata/edit/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		source, _, _ := strings.Cut(string(text), "==== ")
		f.Add([]byte(source))
		f.Add([]byte(strings.ReplaceAll(source, "\n", "\r\n")))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		set, problems := rule.Parse("", source)
		if problems.Err() != nil {
			return
		}
		r := &rule.Rule{ID: "put-by-fuzz", Key: []rule.Source{{Kind: rule.Cookie, Name: "fuzz"}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 7, Period: 13e9}}}}
		out, kept, err := put(source, r)
		if err != nil {
			return // there may be too many rules, or one just like it
		}
		checkRules(t, "Put", out, append(append([]rule.Rule(nil), set.Rules...), *r))
		if kept {
			checkComments(t, source, out)
		}
		out, _, err = del(out, r.ID)
		if err != nil {
			t.Fatalf("Delete of what was put = %v", err)
		}
		checkRules(t, "Delete", out, set.Rules)
	})
}

// checkComments finds every line of the source that is a comment.
func checkComments(t *testing.T, source, out []byte) {
	t.Helper()
	for line := range strings.Lines(string(source)) {
		if comment := strings.TrimSpace(line); strings.HasPrefix(comment, "#") && !strings.Contains(string(out), comment) {
			t.Errorf("the comment %q was lost from\n%s\nto\n%s", comment, source, out)
		}
	}
}

// documents are those that package rule is tested with.
func documents(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../../rule/testdata/parse/*.[yj]*[ln]")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, ".golden") })
}

func examples(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../../examples/rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return source
}
