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

	line  line
	files map[string]*bytes.Buffer
}

// Test is a run within a test.
func Test(t testing.TB) *Run { return &Run{TB: t, files: map[string]*bytes.Buffer{}} }

// File is where to write a file of results.
func (r *Run) File(name string) *bytes.Buffer {
	if r.files[name] == nil {
		r.files[name] = &bytes.Buffer{}
	}
	return r.files[name]
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
func Main(suites []Suite, args []string, out, errors *os.File) (code int) {
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

func (s Suite) run(quick bool, beside, dir string, out, progress *os.File) error {
	// The collector's share is the same whatever the environment says.
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
	scope, err := testkit.NewScope("bench")
	if err != nil {
		return err
	}
	r := Test(scope)
	r.Quick, r.Beside, r.Clients, r.line.out = quick, beside, s.Clients, progress
	info, err := progress.Stat()
	r.line.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	err = scope.Try(func() { s.Run(r) })
	scope.Close()
	r.line.clear()
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

// Step says how far the run has come, and what comes next.
func (r *Run) Step(done, total int, what string) { r.line.step(done, total, what) }

const width = 24

// line shows the progress of a long run: one changing line on a terminal, one line for each
// thing that is measured elsewhere. It is safe for concurrent use.
type line struct {
	out      io.Writer // nil for nowhere
	terminal bool

	mu   sync.Mutex
	what string
}

func (l *line) step(done, total int, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.out == nil:
	case l.terminal:
		bar := strings.Repeat("#", width*done/max(1, total))
		fmt.Fprintf(l.out, "\r\x1b[K[%-*s] %d/%d %s", width, bar, done, total, what)
	case what != l.what:
		l.what = what
		fmt.Fprintf(l.out, "%d/%d %s\n", done, total, what)
	}
}

// clear removes the line, so that something else can be printed.
func (l *line) clear() {
	if l.terminal {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}

// WriteLine writes the fields of several values as one object of JSON.
func (r *Run) WriteLine(w *bytes.Buffer, parts ...any) {
	var fields [][]byte
	for _, part := range parts {
		object := testkit.Must(json.Marshal(part))(r)
		fields = append(fields, object[1:len(object)-1])
	}
	fmt.Fprintf(w, "{%s}\n", bytes.Join(fields, []byte(",")))
}
