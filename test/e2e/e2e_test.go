package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirhq/weir/internal/build"
)

var update = flag.Bool("update", false, "write the expected output in the scripts again")

// bin is the directory of the binary under test.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "4") // they wait for servers and pages, more than they compute
	os.Exit(buildAndRun(m))
}

// buildAndRun builds weir once for all tests, as make release and make image do.
func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := build.Weir("../..", build.Host, filepath.Join(dir, "weir"), "-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	defer stopChromium()
	return m.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "serve": serve},
	})
}

// exits runs a command that must end with the given code: exits 2 weir --bogus.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// serve starts weir serve on a free port with the given flags, until the script ends,
// and sets WEIR_SERVER to its URL.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve [FLAG]...")
	}
	p, err := launch(ts.MkAbs("."), os.Environ(), append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	ts.Check(err)
	ts.Defer(p.kill)
	ts.Setenv("WEIR_SERVER", p.URL)
}
