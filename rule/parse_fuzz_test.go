package rule_test

import (
	"reflect"
	"testing"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// FuzzParse holds whatever a document says: it is read or denied, never a panic and
// never a hang; what is read compiles, and is read back from each way of writing it.
func FuzzParse(f *testing.F) {
	for _, file := range append(goldenFiles(f), exampleFiles(f)...) {
		f.Add(readFile(f, file))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		set, problems := rule.Parse("fuzz", source)
		for _, p := range problems {
			if p.Message == "" || len(p.Message) > 1000 || p.Line < 0 || p.Column < 0 {
				t.Fatalf("a problem that cannot be: %+v", p)
			}
			if _, known := rule.LookUp(p.Code); !known {
				t.Fatalf("a problem without a code that is known: %+v", p)
			}
		}
		rule.ParseRule("fuzz", source)
		if set == nil {
			if problems.Err() == nil {
				t.Fatal("neither a set nor an error")
			}
			return
		}
		if _, err := rule.Compile(set, rule.Options{}); err != nil {
			t.Fatalf("it was parsed, and does not compile: %v", err)
		}
		for name, text := range map[string][]byte{"x.yaml": rule.Format(set), "x.json": rule.ToJSON(set)} {
			back, problems := rule.Parse(name, text)
			if !reflect.DeepEqual(set, back) {
				t.Fatalf("read back differently: %v\n%s", problems, text)
			}
		}
		tidy, problems := ruleedit.Tidy("fuzz", source)
		if after, _ := rule.Parse("fuzz", tidy); !reflect.DeepEqual(set, after) {
			t.Fatalf("formatting changed it: %v\n%s", problems, tidy)
		}
		if again, _ := ruleedit.Tidy("fuzz", tidy); string(again) != string(tidy) {
			t.Fatalf("formatted again as\n%s\nwas\n%s", again, tidy)
		}
	})
}
