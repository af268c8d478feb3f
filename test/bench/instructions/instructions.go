// Package instructions counts the instructions that Redis takes for a request. Unlike its time, they do not
// depend on what else a machine does.
package instructions

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// Run writes the table.
func Run(r *bench.Run) { run(r, bench.Pick(r, 300, 50), "") }

// run is for the kinds of requests that have this in their names.
func run(r *bench.Run, calls int, name string) {
	own := drive(r, "", calls, name)
	scripts := drive(r, "", calls, name, "--rename-command", "FCALL", "") // as of an older Redis
	about := fmt.Sprintf("Instructions of Redis, counted by callgrind: the mean of %d that come alone, and of ten times as many in calls of 50;\n"+
		"by functions, and by scripts where there are none.", calls)
	columns := []string{"<request", "alone", "50", "scripts, alone", "scripts, 50"}
	var other []result
	if r.Beside != "" {
		other, columns = drive(r, r.Beside, calls, name), append(columns, "× alone", "× 50", "× scripts, alone", "× scripts, 50")
		about += "\n×: ratio to the other version of weir."
	}
	table := bench.NewTable(columns...)
	for i, x := range own {
		counts, cells := []float64{x.Alone, x.Crowded, scripts[i].Alone, scripts[i].Crowded}, []string{x.Name}
		for _, n := range counts {
			cells = append(cells, bench.Count(n))
		}
		for _, o := range other {
			for j, n := range counts {
				if o.Name == x.Name {
					cells = append(cells, fmt.Sprintf("%.2f", n/[]float64{o.Alone, o.Crowded}[j%2]))
				}
			}
		}
		for r.Beside != "" && len(cells) < len(columns) {
			cells = append(cells, "–") // the other one does not know leases
		}
		table.Cells(cells)
	}
	r.Write("instructions.txt", bench.Describe(), about, table)
}

// result is of one kind of request.
type result struct {
	Name           string
	Alone, Crowded float64
}

// drive starts a Redis with such flags under callgrind, and has a driver ask it that is built with the weir of another
// directory, if there is one.
func drive(r *bench.Run, other string, calls int, name string, flags ...string) (results []result) {
	r.Step(0, 1, "measuring weir "+other)
	const weir = "github.com/weirhq/weir"
	dir := r.TempDir()
	args := []string{"build", "-o", dir}
	if other != "" {
		mod, own := filepath.Join(dir, "go.mod"), filepath.Dir(output(r, "go", "env", "GOMOD"))
		output(r, "cp", filepath.Join(own, "go.mod"), filepath.Join(own, "go.sum"), dir)
		for _, module := range []string{"", "/store/redis/goredis", "/test/conformance/envoy"} {
			output(r, "go", "mod", "edit", "-replace="+weir+module+"="+testkit.Must(filepath.Abs(other))(r)+module, mod)
		}
		args = append(args, "-mod=mod", "-modfile="+mod)
	}
	if other == "" {
		args = append(args, "-tags=leases")
	}
	output(r, "go", append(args, weir+"/test/bench/instructions/drive")...)
	redis := testkit.Must(testkit.Start("valgrind", append([]string{
		"--tool=callgrind", "--callgrind-out-file=" + filepath.Join(dir, "callgrind"),
		// What Redis does from time to time does not count: on a busy machine there is more of it for a request.
		"--toggle-collect=readQueryFromClient", "--toggle-collect=writeToClient", "redis-server",
		"--port", "0", "--unixsocket", filepath.Join(dir, "redis"), "--dir", dir, "--save", "", "--hz", "1",
	}, flags...), filepath.Join(dir, "log"), os.Environ()...))(r)
	r.Cleanup(redis.Kill)
	testkit.Must(redis.Await(regexp.MustCompile("(?i)ready to accept connections")))(r)
	lines := json.NewDecoder(strings.NewReader(output(r, filepath.Join(dir, "drive"), dir, strconv.Itoa(redis.PID()), strconv.Itoa(calls), name)))
	for lines.More() {
		results = append(results, result{})
		testkit.OK(r, lines.Decode(&results[len(results)-1]))
	}
	return results
}

func output(r *bench.Run, program string, args ...string) string {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	return strings.TrimSpace(string(testkit.Must(cmd.Output())(r)))
}
