// Package lint has tests for the rules of this repository that a compiler cannot
// check: which package may import which, that every package has a description,
// and what the arithmetic must not use. Run them with make lint.
package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Each check returns what is wrong, a sentence a mistake.

func checkLayout(files []file) (wrong []string) {
	for _, f := range files {
		from, entry := floor(f.dir)
		if from < 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %s has no place in the layout; give it one in internal/lint/layout_test.go", f.name, f.dir))
			continue
		}
		for _, i := range f.imports() {
			if dir, ok := ours(i); ok {
				if to, target := floor(dir); to < from || to == from && !sameTree(entry, target) {
					wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s: %s", f.name, f.dir, dir, layout[from].why))
				}
				continue
			}
			if strings.Contains(strings.SplitN(i, "/", 2)[0], ".") && !slices.ContainsFunc(thirdParty[entry], func(module string) bool { return isOf(i, module) }) {
				wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s: %s", f.name, f.dir, i, layout[from].why))
			}
		}
	}
	return wrong
}

// isOf is whether a package belongs to a module; every one belongs to "*".
func isOf(pkg, module string) bool {
	return module == "*" || pkg == module || strings.HasPrefix(pkg, module+"/")
}

// sameTree is for trees of packages that belong together; the tools of internal
// do not.
func sameTree(a, b string) bool {
	return a == b && strings.HasSuffix(a, "/...") && a != "internal/..."
}

func checkPackageDocs(files []file) (wrong []string) {
	docs, dirs := map[string]int{}, map[string]bool{}
	for _, f := range files {
		dirs[f.dir] = true
		if f.ast.Doc != nil {
			docs[f.dir]++
		}
	}
	for dir := range dirs {
		if docs[dir] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: it has %d package comments; write exactly one that says what it is for", dir, docs[dir]))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func checkNames(files []file) (wrong []string) {
	for _, f := range files {
		for _, name := range []string{f.ast.Name.Name, path.Base(f.dir)} {
			if bannedNames[name] {
				wrong = append(wrong, fmt.Sprintf("%s: %q says nothing about what is inside; name the package after what it provides", f.name, name))
			}
		}
	}
	return wrong
}

func checkArithmetic(files []file) (wrong []string) {
	for _, f := range files {
		if f.dir != "." {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					name := x.Name + "." + s.Sel.Name
					if why := untouchable[name]; why != "" {
						wrong = append(wrong, fmt.Sprintf("%s: %s %s, and the root package does not", f.name, name, why))
					}
				}
			}
			return true
		})
	}
	return wrong
}

func checkLength(files []file) (wrong []string) {
	for _, f := range files {
		if f.lines > maxLines && !strings.HasSuffix(f.name, ".pb.go") {
			wrong = append(wrong, fmt.Sprintf("%s: %d lines are more than one thought; make two files of it", f.name, f.lines))
		}
	}
	return wrong
}
