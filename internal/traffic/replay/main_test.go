package replay

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// compile makes a table of a document of rules.
func compile(t testing.TB, source string) *rule.Table {
	t.Helper()
	set, problems := rule.Parse("rules.yaml", []byte(source))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// example compiles one of the examples.
func example(t testing.TB, name string) *rule.Table {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("../../../examples/rules", name))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, string(source))
}

// run replays a text.
func run(t testing.TB, o Options, log string) *Report {
	t.Helper()
	r, err := Run(context.Background(), o, NewLog("log", strings.NewReader(log)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
