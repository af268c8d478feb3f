package lint

import (
	"fmt"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/build"
)

// goSurface lists what the packages for users export, as the compiler sees it: names of parameters do not
// count, and methods that come from an embedded type do.
func goSurface(t *testing.T) []string {
	compiled := map[string]string{} // the files with what a package exports
	var public []string
	list := goCommand(t, "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Name}} {{.Export}}", "./...")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(out)) {
		words := strings.Fields(l)
		if len(words) == 3 {
			compiled[words[0]] = words[2]
		}
		if dir, ok := ours(words[0]); ok && isPublic(dir) && words[1] != "main" && user(dir) == "users" && !separate(dir) {
			public = append(public, words[0])
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	var lines []string
	for _, path := range public {
		pkg, err := from.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(path, "github.com/weirhq/")
		name = strings.TrimPrefix(name, "weir/")
		for _, exported := range pkg.Scope().Names() {
			if object := pkg.Scope().Lookup(exported); object.Exported() {
				lines = append(lines, objectLines(name+"."+exported, object)...)
			}
		}
	}
	return lines
}

// goCommand is about packages that are compiled as weir is built, which other tests have compiled as well.
func goCommand(t *testing.T, verb string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{verb}, build.FlagsOf("../.."), args)...)
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	cmd.Env = append(cmd.Environ(), build.Environment(build.Host)...)
	return cmd
}

func qualified(pkg *types.Package) string { return pkg.Name() }

func text(t types.Type) string { return types.TypeString(t, qualified) }

func objectLines(name string, object types.Object) []string {
	switch object := object.(type) {
	case *types.Const:
		value := object.Val().ExactString()
		if object.Val().Kind() == constant.String && len(value) > 80 {
			value = "a long text"
		}
		return []string{fmt.Sprintf("%s: const %s = %s", name, text(object.Type()), value)}
	case *types.Func:
		return []string{name + ": " + signature(object.Signature())}
	case *types.TypeName:
		return typeLines(name, object)
	}
	return []string{name + ": var " + text(object.Type())}
}

// typeLines are a type, its fields and its methods. An interface that others can implement is one line, because
// one more method breaks them.
func typeLines(name string, object *types.TypeName) []string {
	if object.IsAlias() {
		return []string{name + ": = " + text(types.Unalias(object.Type()))}
	}
	lines := []string{name + ": type " + kind(object.Type())}
	if s, ok := object.Type().Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Exported() {
				lines = append(lines, fmt.Sprintf("%s.%s: %s", name, f.Name(), text(f.Type())))
			}
		}
	}
	if types.IsInterface(object.Type()) {
		return lines
	}
	byValue := types.NewMethodSet(object.Type())
	for method := range types.NewMethodSet(types.NewPointer(object.Type())).Methods() {
		f := method.Obj().(*types.Func)
		if !f.Exported() {
			continue
		}
		of := "method "
		if byValue.Lookup(f.Pkg(), f.Name()) == nil {
			of = "pointer method "
		}
		lines = append(lines, fmt.Sprintf("%s.%s: %s%s", name, f.Name(), of, signature(f.Signature())))
	}
	return lines
}

func kind(t types.Type) string {
	parameters := ""
	if named, ok := t.(*types.Named); ok && named.TypeParams().Len() > 0 {
		var all []string
		for p := range named.TypeParams().TypeParams() {
			all = append(all, text(p.Constraint()))
		}
		parameters = " of [" + strings.Join(all, ", ") + "]"
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return "struct" + parameters
	case *types.Signature:
		return signature(u) + parameters
	case *types.Interface:
		var methods []string
		for m := range u.Methods() {
			methods = append(methods, m.Name()+strings.TrimPrefix(signature(m.Signature()), "func"))
		}
		slices.Sort(methods)
		return "interface{" + strings.Join(methods, "; ") + "}" + parameters
	default:
		return text(u) + parameters
	}
}

// signature is that of a function, without the names of its parameters.
func signature(s *types.Signature) string {
	unnamed := func(t *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range t.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	var parameters []string
	for p := range s.TypeParams().TypeParams() {
		parameters = append(parameters, p.Obj().Name()+" "+text(p.Constraint()))
	}
	plain := text(types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic()))
	if parameters != nil {
		plain = strings.Replace(plain, "func", "func["+strings.Join(parameters, ", ")+"]", 1)
	}
	return plain
}
