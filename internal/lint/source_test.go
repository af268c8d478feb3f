package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/weirhq/weir"

// file is a Go file that is not a test.
type file struct {
	dir   string // slash-separated, relative to the repository
	name  string
	lines int
	ast   *ast.File
}

// imports are the paths that the file imports.
func (f file) imports() []string {
	var all []string
	for _, i := range f.ast.Imports {
		all = append(all, strings.Trim(i.Path.Value, `"`))
	}
	return all
}

// sources parses every Go file of the repository that is not a test.
func sources(root string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(relative)
		files = append(files, file{
			dir: path.Dir(slashed), name: slashed, ast: parsed,
			lines: set.File(parsed.FileStart).LineCount(),
		})
		return nil
	})
	return files, err
}

// floor returns the number of the layout's line that a directory is on, and the
// entry that names it; -1 if none does.
func floor(dir string) (int, string) {
	for i, l := range layout {
		for _, entry := range l.packages {
			if tree, ok := strings.CutSuffix(entry, "/..."); entry == dir || ok && (dir == tree || strings.HasPrefix(dir, tree+"/")) {
				return i, entry
			}
		}
	}
	return -1, ""
}

// ours returns the directory of an import of this repository.
func ours(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}
