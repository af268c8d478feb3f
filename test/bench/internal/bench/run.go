// Package bench is what all suites have in common: how they are run, who asks, how contestants
// take turns, which programs they start, and what the tables look like.
package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// Suite is something to measure.
type Suite struct {
	Name  string
	About string
	Takes string   // how long, and with -quick
	Files []string // of results; the first is printed
	Run   func(*Run)

	Compares bool // it measures another version of weir, too
	Clients  int  // how many there are, unless -clients says another number; 0 if it has none
}

// maxClients is the most that -clients may say. They fill memory and the directory for temporary files.
const maxClients = 10_000_000

// Run is one run of a suite. It cleans up what the suite starts.
type Run struct {
	testing.TB
	Quick  bool   // for a first look only
	Beside string // a directory with another version of weir; empty for none

	Clients int // how many there are

	files    map[string]*bytes.Buffer
	progress io.Writer // nil for nowhere

	mu   sync.Mutex
	what string // comes, as it said last
}

// Test is a run within a test.
func Test(t testing.TB) *Run { return &Run{TB: t, files: map[string]*bytes.Buffer{}} }

// File is what a file of results will have.
func (r *Run) File(name string) *bytes.Buffer {
	if r.files[name] == nil {
		r.files[name] = &bytes.Buffer{}
	}
	return r.files[name]
}

// Write adds texts and tables to a file of results, with an empty line between them.
func (r *Run) Write(name string, parts ...any) {
	w := r.File(name)
	for _, part := range parts {
		if w.Len() > 0 {
			w.WriteByte('\n')
		}
		fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprint(part), "\n"))
	}
}

// Pick is what the flag -quick chooses.
func Pick[O any](r *Run, full, quick O) O {
	if r.Quick {
		return quick
	}
	return full
}

// Main runs the suite that the first argument names, prints its first file, and keeps all of
// them in the directory of results.
func Main(suites []Suite, args []string, out, errors io.Writer) (code int) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errors)
	quick := flags.Bool("quick", false, "a first look only")
	dir := flags.String("results", "results", "`directory` for the files; empty for nowhere")
	beside := flags.String("beside", "", "`directory` with another version of weir, which is measured too")
	clients := flags.Int("clients", 0, "`number` of clients, 1 to 10,000,000")
	flags.Usage = func() { usage(suites, flags, errors) }
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return 0
	} else if err != nil {
		return 2
	}
	for _, s := range suites {
		if s.Name != name || flags.NArg() > 0 {
			continue
		}
		if *beside != "" && !s.Compares {
			fmt.Fprintf(errors, "%s measures this version only; remove -beside\n", name)
			return 2
		}
		if *clients != 0 && s.Clients == 0 {
			fmt.Fprintf(errors, "%s has no directory of clients; remove -clients\n", name)
			return 2
		}
		if *clients < 0 || *clients > maxClients {
			fmt.Fprintf(errors, "-clients %d is not possible; write 1 to %d\n", *clients, maxClients)
			return 2
		}
		s.Clients = cmp.Or(*clients, s.Clients)
		if err := s.run(*quick, *beside, *dir, out, errors); err != nil {
			fmt.Fprintln(errors, err)
			return 1
		}
		return 0
	}
	flags.Usage()
	return 2
}

func usage(suites []Suite, flags *flag.FlagSet, out io.Writer) {
	fmt.Fprint(out, "Usage: go run . NAME [flags]\n\n")
	for _, s := range suites {
		fmt.Fprintf(out, "  %-9s %s (%s)\n", s.Name, s.About, s.Takes)
	}
	fmt.Fprint(out, "\nFlags:\n")
	flags.PrintDefaults()
}

func (s Suite) run(quick bool, beside, dir string, out, progress io.Writer) error {
	// The collector's share is the same whatever the environment says.
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
	scope, err := testkit.NewScope("bench")
	if err != nil {
		return err
	}
	r := Test(scope)
	r.Quick, r.Beside, r.Clients, r.progress = quick, beside, s.Clients, progress
	err = scope.Try(func() { s.Run(r) })
	scope.Close()
	if err != nil {
		return err
	}
	if _, err := out.Write(r.File(s.Files[0]).Bytes()); err != nil || dir == "" {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range s.Files {
		if err := os.WriteFile(filepath.Join(dir, name), r.File(name).Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// GoTest runs a test of a package, which is in the module of a directory, with flags that say where to write figures.
func (r *Run) GoTest(dir, pkg, test string, flags ...string) (out []byte, err error) {
	args := []string{"test", pkg, "-run", "^" + test + "$", "-count", "1", "-timeout", "0", "-args"}
	cmd := exec.Command("go", append(args, flags...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd.Output()
}

// Step says how far the run has come and what comes next, if that is something new.
func (r *Run) Step(done, total int, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress != nil && what != r.what {
		r.what = what
		fmt.Fprintf(r.progress, "%d/%d %s\n", done, total, what)
	}
}

// WriteLine writes names and values as one object of JSON, and then the machine.
func (r *Run) WriteLine(w *bytes.Buffer, pairs ...any) {
	w.WriteByte('{')
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(w, "%q:%s,", pairs[i], testkit.Must(json.Marshal(pairs[i+1]))(r))
	}
	w.Write(testkit.Must(json.Marshal(Describe()))(r)[1:])
	w.WriteByte('\n')
}
