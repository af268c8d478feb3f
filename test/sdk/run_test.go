package sdk

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	typescriptDir = "../../sdk/typescript"
	pythonDir     = "../../sdk/python"
)

// depend lets go test see when a file of a client changes, so that it does not show an old result.
func depend(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "node_modules" || d.Name() == "dist" || d.Name() == "__pycache__" {
			return filepath.SkipDir
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command in a folder, with what the tests of the clients need in its environment.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cases, err := filepath.Abs("cases.json")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEIR_URL="+weir.url, "WEIR_BINARY="+weir.binary, "WEIR_CASES="+cases,
		"PYTHONDONTWRITEBYTECODE=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestTypeScript builds the client, runs its tests, and installs the package elsewhere.
func TestTypeScript(t *testing.T) {
	depend(t, typescriptDir)
	install(t)
	tsc := filepath.Join("node_modules", "typescript", "bin", "tsc")
	run(t, typescriptDir, "node", tsc)
	t.Run("tests", func(t *testing.T) {
		t.Parallel()
		run(t, typescriptDir, "node", "--test", "test/")
	})
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		run(t, typescriptDir, "node", tsc, "-p", "test")
	})
	t.Run("package", func(t *testing.T) {
		t.Parallel()
		packed := t.TempDir()
		var list []struct {
			Filename string
			Files    []struct{ Path string }
		}
		said := run(t, typescriptDir, "npm", "pack", "--silent", "--json", "--ignore-scripts", "--pack-destination", packed)
		if err := json.Unmarshal([]byte(said[strings.Index(said, "["):]), &list); err != nil {
			t.Fatalf("%v in %s", err, said)
		}
		for _, f := range list[0].Files {
			if !strings.HasPrefix(f.Path, "dist/") && !slices.Contains([]string{"package.json", "README.md", "LICENSE"}, f.Path) {
				t.Errorf("the package has %s", f.Path)
			}
		}
		to := filepath.Join(packed, "node_modules", "@weirhq", "client")
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, packed, "tar", "-xzf", list[0].Filename, "-C", to, "--strip-components=1")
		if err := os.CopyFS(filepath.Join(packed, "examples"), os.DirFS(filepath.Join(typescriptDir, "examples"))); err != nil {
			t.Fatal(err)
		}
		if got := run(t, packed, "node", "examples/check.mjs"); !strings.HasPrefix(got, "true ") { // on a slow machine it fails open
			t.Errorf("the example says %q", got)
		}
		if got := run(t, packed, "node", "examples/counters.mjs"); !strings.HasSuffix(got, " 7 178.25792\n") {
			t.Errorf("the example of counters says %q", got)
		}
		run(t, packed, "node", "--input-type=module", "--eval", example(t, typescriptDir, "js"))
		for _, name := range []string{"README.md", "LICENSE", "dist/index.d.ts", "dist/express.js", "dist/fastify.js"} {
			if _, err := os.Stat(filepath.Join(to, name)); err != nil {
				t.Error(err)
			}
		}
	})
}

// example is the code in the README of a client, with the weir of the tests.
func example(t *testing.T, dir, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "```"+language+"\n")
	code, _, found := strings.Cut(code, "```")
	if !found || !strings.Contains(code, "http://127.0.0.1:8080") {
		t.Fatalf("%s has no example", dir)
	}
	return strings.ReplaceAll(code, "http://127.0.0.1:8080", weir.url)
}

// install downloads what the lock file lists, unless it is there. npm writes its own copy of
// the list last.
func install(t *testing.T) {
	t.Helper()
	want, err := os.Stat(filepath.Join(typescriptDir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.Stat(filepath.Join(typescriptDir, "node_modules", ".package-lock.json"))
	if err != nil || have.ModTime().Before(want.ModTime()) {
		run(t, typescriptDir, "npm", "ci", "--silent", "--no-audit", "--no-fund")
	}
}

// debianPython is the Python for which Debian has packages. Another one may come before it.
const debianPython = "/usr/bin/python3"

// TestPython runs the tests of the client, checks its types, and installs the package elsewhere, without an index.
func TestPython(t *testing.T) {
	depend(t, pythonDir)
	t.Run("tests", func(t *testing.T) {
		t.Parallel()
		run(t, pythonDir, debianPython, "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	})
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		run(t, pythonDir, debianPython, "-m", "mypy", "--strict", "--cache-dir", t.TempDir(), "weir")
	})
	t.Run("package", func(t *testing.T) {
		t.Parallel()
		to := t.TempDir()
		run(t, pythonDir, "python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", to, ".")
		examples, err := filepath.Abs(filepath.Join(pythonDir, "examples"))
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, to, "python3", "-c", "import runpy, sys, weir; assert weir.__file__.startswith("+
			"sys.argv[1]), weir.__file__; runpy.run_path(sys.argv[2])", to, filepath.Join(examples, "check.py"))
		if !strings.HasPrefix(got, "True ") {
			t.Errorf("the example says %q", got)
		}
		if got := run(t, to, "python3", "-c", "import runpy, sys; runpy.run_path(sys.argv[1])", filepath.Join(examples, "counters.py")); !strings.HasSuffix(got, " 7 178.25792\n") {
			t.Errorf("the example of counters says %q", got)
		}
		run(t, to, "python3", "-c", example(t, pythonDir, "python"))
		about := run(t, to, "python3", "-c", "from importlib.metadata import metadata\nfor name, value in metadata('weir-client').items(): print(name, value)")
		for _, line := range []string{
			"Project-URL Source, https://github.com/weirhq/weir\n", "Classifier Typing :: Typed\n", "Classifier Framework :: AsyncIO\n", "Requires-Python >=3.9\n",
		} {
			if !strings.Contains(about, line) {
				t.Errorf("the metadata have no %q:\n%s", line, about)
			}
		}
		for _, m := range regexp.MustCompile(`Project-URL .*/blob/main/(\S+)`).FindAllStringSubmatch(about, -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Error(err)
			}
		}
		for _, name := range []string{"weir/py.typed", "weir_client-0.1.0.dist-info/licenses/LICENSE"} {
			if _, err := os.Stat(filepath.Join(to, name)); err != nil {
				t.Error(err)
			}
		}
	})
}
