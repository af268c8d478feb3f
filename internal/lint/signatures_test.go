package lint

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// isPublic is whether users of the library can import a package.
func isPublic(dir string) bool {
	for _, part := range strings.Split(dir, "/") {
		switch part {
		case "internal", "cmd", "test", "examples", "web", "deploy":
			return false
		}
	}
	return true
}

// checkSignatures finds exported signatures of public packages that contain a type of
// an internal package, because users could not name that type.
func checkSignatures(files []file) (wrong []string) {
	for _, f := range files {
		if !isPublic(f.dir) || f.ast.Name.Name == "main" {
			continue
		}
		internal := f.internalNames()
		for _, d := range f.ast.Decls {
			for what, types := range exported(d) {
				ast.Inspect(types, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
						wrong = append(wrong, fmt.Sprintf("%s: %s is for users and names %s.%s, which they cannot; give it a type that they can import", f.name, what, x.Name, s.Sel.Name))
					}
					return true
				})
			}
		}
	}
	return wrong
}

// internalNames are by what names the file knows internal packages.
func (f file) internalNames() map[string]bool {
	names := map[string]bool{}
	for _, i := range f.ast.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		if dir, ok := ours(p); !ok || isPublic(dir) {
			continue
		}
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = true
	}
	return names
}

// exported returns what a declaration exports, with the types that are seen of it.
func exported(d ast.Decl) map[string]ast.Node {
	all := map[string]ast.Node{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || isExportedReceiver(d.Recv)) {
			all[d.Name.Name] = d.Type
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					all[spec.Name.Name] = visible(spec.Type)
				}
			case *ast.ValueSpec:
				if spec.Names[0].IsExported() && spec.Type != nil {
					all[spec.Names[0].Name] = spec.Type
				}
			}
		}
	}
	return all
}

func isExportedReceiver(receiver *ast.FieldList) bool {
	exported := true
	ast.Inspect(receiver.List[0].Type, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			exported = x.IsExported()
			return false
		}
		return true
	})
	return exported
}

// visible is a type without the fields that only its package sees.
func visible(t ast.Expr) ast.Node {
	s, ok := t.(*ast.StructType)
	if !ok {
		return t
	}
	seen := &ast.FieldList{}
	for _, field := range s.Fields.List {
		embedded := len(field.Names) == 0
		if embedded || field.Names[0].IsExported() {
			seen.List = append(seen.List, field)
		}
	}
	return seen
}
