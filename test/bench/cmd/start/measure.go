package main

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
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/program"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// figure is a start, or a time without requests.
type figure struct {
	name   string
	took   time.Duration // from the start of the process to the first answer
	memory machine.Memory
	busy   float64 // share of a core while idle
}

// keysFile is where weir keeps what keys have used.
const keysFile = "keys.snapshot"

func measure(t testing.TB, o options, step command.Progress) []figure {
	step(0, 2, "building weir, and making rules and keys")
	path := program.Build(t)
	dirs := []struct {
		name        string
		rules, keys int
	}{
		{"one rule", 1, 0},
		{table.Things(o.rules, "rule"), o.rules, 0},
		{"one rule, " + table.Things(o.keys, "key"), 1, o.keys},
		{table.Things(o.rules, "rule") + ", " + table.Things(o.keys, "key"), o.rules, o.keys},
	}
	places := make([]string, len(dirs))
	for i, d := range dirs {
		places[i] = prepare(t, d.rules, d.keys)
	}
	done := 0
	turns := rounds.Turns{Contestants: len(dirs), Rounds: o.rounds, Seed: [2]uint64{3, 5}}
	all := testcall.Must(rounds.Take(turns, func(_, i int) (figure, error) {
		step(done, len(dirs)*o.rounds+1, dirs[i].name)
		done++
		return start(t, path, places[i], dirs[i].name)
	}))(t)
	var figures []figure
	for _, measured := range all {
		figures = append(figures, rounds.Median(measured, func(f figure) float64 { return f.took.Seconds() }))
	}
	step(done, done+1, "idle")
	return append(figures, testcall.Must(rest(t, path, places[0], o))(t))
}

// prepare makes a directory with rules, and with the usage of keys in what weir saved last.
func prepare(t testing.TB, rules, keys int) string {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range rules {
		fmt.Fprintf(&b, "  - {id: r%d, match: {path: /v1/r%d/**}, key: user, limit: 1000/1m}\n", i, i)
	}
	testcall.OK(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(b.String()), 0o600))
	if keys == 0 {
		return dir
	}
	s := memory.New(memory.Options{})
	l := testcall.Must(weir.NewLimiter(s, weir.Limit{Name: "r0", N: 1000, Period: 30 * 24 * time.Hour}))(t)
	for i := range keys {
		testcall.Must(l.Take(context.Background(), fmt.Sprintf("user:%010d", i), 100))(t)
	}
	testcall.OK(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	file := testcall.Must(os.Create(filepath.Join(dir, "data", keysFile)))(t)
	testcall.OK(t, s.Snapshot(file))
	testcall.OK(t, file.Close())
	return dir
}

var flags = []string{"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", "data"}

// start measures one start.
func start(t testing.TB, path, dir, name string) (f figure, err error) {
	f.name = name
	begin := time.Now()
	p := program.Serve(t, path, dir, program.HTTP, flags...)
	defer p.Stop()
	if err := ask(p.Address); err != nil {
		return f, err
	}
	f.took = time.Since(begin)
	f.memory, err = machine.MemoryOf(p.PID)
	return f, err
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
func rest(t testing.TB, path, dir string, o options) (f figure, err error) {
	f.name = "nobody asks"
	p := program.Serve(t, path, dir, program.HTTP, flags...)
	defer p.Stop()
	time.Sleep(o.settle)
	before, err := machine.CPU(p.PID)
	if err != nil {
		return f, err
	}
	time.Sleep(o.idle)
	after, err := machine.CPU(p.PID)
	if err != nil {
		return f, err
	}
	f.busy = (after - before).Seconds() / o.idle.Seconds()
	f.memory, err = machine.MemoryOf(p.PID)
	return f, err
}
