// Package start measures what "weir serve" needs before the first request and between
// requests: how long it takes to start, with many rules and with the usage of many keys on the disk, and
// how much memory and processor time it takes while nobody asks.
//
// weir is built as releases are, and runs as a process of its own. A start ends with the first
// answer that allows a request. Starts take turns, in another order each time, and a figure is the
// median of the rounds.
package start

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	rules, keys  int
	rounds       int
	settle, idle time.Duration // before it counts as idle, and how long that is watched
}

var (
	full  = options{rules: 10_000, keys: 1_000_000, rounds: 7, settle: 10 * time.Second, idle: time.Minute}
	quick = options{rules: 10_000, keys: 1_000_000, rounds: 3, settle: time.Second, idle: 5 * time.Second}
)

// keysFile is where weir keeps what keys have used.
const keysFile = "keys.snapshot"

// Run writes the table.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	r.Step(0, 2, "building weir, and making rules and keys")
	path := bench.Build(r)
	contest := bench.Contest{What: "starts", Rounds: o.rounds}
	var dirs []string
	for _, d := range []struct{ rules, keys int }{{1, 0}, {o.rules, 0}, {1, o.keys}, {o.rules, o.keys}} {
		name := "one rule"
		if d.rules > 1 {
			name = bench.Things(d.rules, "rule")
		}
		if d.keys > 0 {
			name += ", " + bench.Things(d.keys, "key")
		}
		dir := prepare(r, d.rules, d.keys)
		dirs = append(dirs, dir)
		contest.Contestants = append(contest.Contestants, bench.Contestant{Name: name, Play: func(int) (bench.Round, error) { return start(r, path, dir) }})
	}
	starts := contest.Run(r)
	r.Step(1, 2, "idle")
	idle := testkit.Must(rest(r, path, dirs[0], o))(r)

	about := fmt.Sprintf(`ms: from the start of the process to the first answer over HTTP; median of %d rounds that take turns.
MB: resident memory then. own: without the pages of the program file, which the system can drop and
read again.`, o.rounds)
	table := bench.NewTable("weir serve with", "ms", "MB", "own MB")
	for i, name := range starts.Names {
		f := bench.Median(starts.Rounds[i], bench.Round.Seconds)
		table.Row("%s|%d|%.1f|%.1f", name, f.Wall.Milliseconds(), float64(f.Memory.Resident)/1e6, float64(f.Memory.Own)/1e6)
	}
	resident, last := float64(idle.Memory.Resident)/1e6, len(starts.Names)-1
	busy := 100 * idle.CPU.Seconds() / idle.Wall.Seconds()
	without := fmt.Sprintf("Without requests, for %v after %v: %.1f MB, of them %.1f MB own; %.2f %% of a core.",
		o.idle, o.settle, resident, float64(idle.Memory.Own)/1e6, busy)
	r.Write("start.txt", bench.Describe(), about, table, without, bench.Aims("", []bench.Aim{
		{What: "start with " + starts.Names[last] + ", s", Bound: 1, Measured: starts.Median(last, bench.Round.Seconds)},
		{What: "resident memory without requests, MB", Bound: 25, Measured: resident},
		{What: "of a core without requests, %", Bound: 0.1, Measured: busy},
	}))
}

// prepare makes a directory with rules, and with the usage of keys in what weir saved last.
func prepare(t testing.TB, rules, keys int) string {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range rules {
		fmt.Fprintf(&b, "  - {id: r%d, match: {path: /v1/r%d/**}, key: user, limit: 1000/1m}\n", i, i)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(b.String()), 0o600))
	if keys == 0 {
		return dir
	}
	s := memory.New(memory.Options{})
	l := testkit.Must(weir.NewLimiter(s, weir.Limit{Name: "r0", N: 1000, Period: 30 * 24 * time.Hour}))(t)
	for i := range keys {
		testkit.Must(l.Take(context.Background(), fmt.Sprintf("user:%010d", i), 100))(t)
	}
	testkit.OK(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	file := testkit.Must(os.Create(filepath.Join(dir, "data", keysFile)))(t)
	testkit.OK(t, s.Snapshot(file))
	testkit.OK(t, file.Close())
	return dir
}

var flags = []string{"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", "data"}

// start measures one start, until the first answer.
func start(t testing.TB, path, dir string) (out bench.Round, err error) {
	begin := time.Now()
	p := bench.ServeWeir(t, path, dir, bench.HTTP, flags...)
	defer p.Stop()
	if err := ask(p.Address); err != nil {
		return out, err
	}
	out.Wall = time.Since(begin)
	out.Memory, err = bench.MemoryOf(p.PID)
	return out, err
}

// ask is an error unless weir allows a request by its first rule.
func ask(address string) error {
	answer, err := http.Post("http://"+address+"/v1/check", "application/json", strings.NewReader(`{"path":"/v1/r0/x","user":"alice"}`))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var said struct {
		Allowed bool   `json:"allowed"`
		Rule    string `json:"rule"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || !said.Allowed || said.Rule != "r0" {
		return fmt.Errorf("the answer is %+v, %w", said, err)
	}
	return nil
}

// rest measures a weir that nobody asks.
func rest(t testing.TB, path, dir string, o options) (out bench.Round, err error) {
	p := bench.ServeWeir(t, path, dir, bench.HTTP, flags...)
	defer p.Stop()
	time.Sleep(o.settle)
	out.Wall = o.idle
	if out.CPU, err = bench.Busy(func() error { time.Sleep(o.idle); return nil }, p.PID); err == nil {
		out.Memory, err = bench.MemoryOf(p.PID)
	}
	return out, err
}
