package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

var checks = map[string]func([]file) []string{
	"layout": checkLayout, "package docs": checkPackageDocs, "names": checkNames,
	"arithmetic": checkArithmetic, "length": checkLength, "signatures": checkSignatures,
	"budget": checkBudget, "folders": checkFolders,
}

func TestRepository(t *testing.T) {
	files, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 {
		t.Fatalf("only %d files were found", len(files))
	}
	for name, check := range checks {
		for _, mistake := range check(files) {
			t.Errorf("%s: %s", name, mistake)
		}
	}
}

// Every line of the layout is about something that is there.
func TestLayoutIsInUse(t *testing.T) {
	files, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, f := range files {
		_, entry := floor(f.dir)
		used[entry] = true
	}
	for _, l := range layout {
		for _, entry := range l.packages {
			if !used[entry] {
				t.Errorf("the layout names %s, which does not exist", entry)
			}
		}
	}
}

// Each check finds what it is for.
func TestChecksFindMistakes(t *testing.T) {
	source := func(name, src string) file {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return file{dir: path.Dir(name), name: name, lines: strings.Count(src, "\n"), ast: parsed}
	}
	for _, c := range []struct{ check, name, src, want string }{
		{"layout", "x.go", `package weir; import "github.com/weirhq/weir/store/memory"`, ". must not import store/memory"},
		{"layout", "x.go", `package weir; import "github.com/spf13/cobra"`, ". must not import github.com/spf13/cobra"},
		{"layout", "store/memory/x.go", `package memory; import "github.com/weirhq/weir/store/storetest"`, "must not import store/storetest"},
		{"layout", "internal/a/x.go", `package a; import "github.com/weirhq/weir/internal/b"`, "must not import internal/b"},
		{"layout", "internal/a/x.go", `package a; import "github.com/weirhq/weir"`, "must not import ."},
		{"layout", "elsewhere/x.go", `package elsewhere`, "has no place in the layout"},
		{"package docs", "a/x.go", `package a`, "it has 0 package comments"},
		{"names", "internal/util/x.go", `package util`, `"util" says nothing`},
		{"names", "internal/common/x.go", `package fine`, `"common" says nothing`},
		{"arithmetic", "x.go", "package weir\nvar _ = time.Now()", "time.Now reads a clock"},
		{"arithmetic", "x.go", "package weir\nvar mu sync.Mutex", "sync.Mutex is a lock"},
		{"signatures", "queue/x.go", `package queue; import "github.com/weirhq/weir/internal/redislink"; func Open(redislink.Link)`, "Open is for users and names redislink.Link"},
		{"signatures", "queue/x.go", `package queue; import r "github.com/weirhq/weir/internal/redislink"; type Options struct{ Link []*r.Link }`, "Options is for users and names r.Link"},
		{"signatures", "queue/x.go", `package queue; import r "github.com/weirhq/weir/internal/redislink"; type Store struct{}; func (*Store) Link() map[string]r.Link`, "names r.Link"},
		{"budget", "web/x.go", "package web\n" + strings.Repeat("\n", 500), "web has 501 lines of Go and a budget of"},
		{"budget", "x.go", "package weir\n", "lower the budget"},
		{"length", "x.go", "package weir\n" + strings.Repeat("\n", maxLines), "make two files of it"},
	} {
		found := strings.Join(checks[c.check]([]file{source(c.name, c.src)}), "\n")
		if !strings.Contains(found, c.want) {
			t.Errorf("%s of %q: found %q, want %q", c.check, c.src, found, c.want)
		}
	}
	var many []file
	for i := range maxInternalFolders + 1 {
		many = append(many, source(fmt.Sprintf("internal/p%d/x.go", i), "package p"))
	}
	if wrong := checkFolders(many); len(wrong) != 1 || !strings.Contains(wrong[0], "folders in internal, more than") {
		t.Errorf("too many folders: found %q", wrong)
	}
	if wrong := checkLayout([]file{source("store/memory/x.go", `package memory; import ("fmt"; "github.com/weirhq/weir"; "github.com/weirhq/weir/internal/clock")`)}); wrong != nil {
		t.Errorf("what is allowed was found wrong: %v", wrong)
	}
	hidden := `package queue
		import "github.com/weirhq/weir/internal/redislink"
		type Store struct{ link redislink.Link }
		type link struct{ Link redislink.Link }
		func (link) Open(redislink.Link)
		func open(redislink.Link)`
	if wrong := checkSignatures([]file{source("queue/x.go", hidden)}); wrong != nil {
		t.Errorf("unexported code was found wrong: %v", wrong)
	}
}

// The root has few folders, so that readers find their way.
func TestRootIsSmall(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" {
			folders = append(folders, e.Name())
		}
	}
	if len(folders) > maxRootFolders {
		t.Errorf("there are %d folders at the root, more than %d; does a user of the library import it, or does it belong into internal or test? %v", len(folders), maxRootFolders, folders)
	}
}

// Scripts have a budget, too.
func TestLua(t *testing.T) {
	lines := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin") {
			return cmp.Or(err, fs.SkipDir)
		}
		if path.Ext(name) != ".lua" {
			return nil
		}
		text, err := os.ReadFile("../../" + name)
		lines += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil || lines > maxLua || lines < maxLua-slack {
		t.Errorf("the scripts have %d lines (%v) and a budget of %d; if that is meant, change it in internal/lint/budget_test.go and say why in the commit", lines, err, maxLua)
	}
}
