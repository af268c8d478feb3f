// Package clients measures a directory of many clients: how long weir clients import takes to send them to a weir on Redis,
// what they take in both, and how long another instance takes to start with them.
//
// weir is built as releases are. Client, weir and Redis are processes of their own, and share the machine.
package clients

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

const quick = 10_000

const rules = `levels: [org, team, user, api_key]
rules:
  - {id: api, key: user, limit: 1000/1m}
`

// figures of a directory.
type figures struct {
	clients          int
	said             string        // by the import in the end
	took             time.Duration // the import
	importing        time.Duration // processor time of each
	serving, storing time.Duration
	start            time.Duration // of another instance, until it knows all
	// Bytes for a client in Redis, in a directory, and of a process that has just read all.
	inRedis, inDirectory, started float64
}

// Run writes the table.
func Run(r *bench.Run) {
	n := r.Clients
	if r.Quick {
		n = min(n, quick)
	}
	write(r, measure(r, n))
}

func measure(r *bench.Run, n int) (f figures) {
	r.Step(0, 4, "building weir, and writing clients")
	path, dir := bench.Build(r), r.TempDir()
	testkit.OK(r, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))
	last := writeClients(r, filepath.Join(dir, "clients.ndjson"), n)
	redis := testredis.Start(r)
	server := bench.NewServer(r, redis.Addr)
	flags := []string{"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--store", "redis://" + redis.Addr}

	r.Step(1, 4, "starting")
	first := bench.ServeWeir(r, path, dir, bench.HTTP, flags...)
	none := testkit.Must(bench.MemoryOf(first.PID))(r)
	empty := server.Number("memory", "used_memory")

	r.Step(2, 4, "importing "+bench.Things(n, "client"))
	f.clients = n
	load := exec.Command(path, "clients", "import", "clients.ndjson", "--server", "http://"+first.Address)
	load.Dir, load.Stderr = dir, os.Stderr
	serving, storing := bench.BusyOf(first.PID), bench.BusyOf(redis.PID())
	f.serving, f.storing = -serving(), -storing()
	begin := time.Now()
	f.said = strings.TrimSpace(string(testkit.Must(load.Output())(r)))
	f.took, f.importing = time.Since(begin), load.ProcessState.UserTime()+load.ProcessState.SystemTime()
	f.serving, f.storing = f.serving+serving(), f.storing+storing()
	f.inRedis = (server.Number("memory", "used_memory") - empty) / float64(n)
	first.Stop()

	r.Step(3, 4, "starting with them")
	begin = time.Now()
	second := bench.ServeWeir(r, path, dir, bench.HTTP, flags...)
	testkit.OK(r, find(second.Address, last))
	f.start = time.Since(begin)
	f.started = float64(testkit.Must(bench.MemoryOf(second.PID))(r).Own-none.Own) / float64(n)
	second.Stop()
	f.inDirectory = float64(heapOf(r, filepath.Join(dir, "clients.ndjson"))) / float64(n)
	return f
}

// heapOf returns what the directory of a file takes.
func heapOf(t testing.TB, name string) int64 {
	file := testkit.Must(os.Open(name))(t)
	defer file.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d, problems, err := rule.ReadDirectory(name, file)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(d)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// perOrganization is how many clients belong to one of them, itself included.
const perOrganization = 1000

// writeClients writes organizations and their users, and returns the last client.
func writeClients(t testing.TB, name string, n int) (last string) {
	file := testkit.Must(os.Create(name))(t)
	defer file.Close()
	w := bufio.NewWriter(file)
	for i := range n {
		org := i / perOrganization
		if last = fmt.Sprintf("user:u%07d", i); i%perOrganization == 0 {
			last = fmt.Sprintf("org:o%d", org)
			fmt.Fprintf(w, `{"client":"%s"}`+"\n", last)
			continue
		}
		fmt.Fprintf(w, `{"client":"%s","parent":"org:o%d","note":"c %d"}`+"\n", last, org, i)
	}
	testkit.OK(t, w.Flush())
	return last
}

// find is an error unless an instance knows a client.
func find(address, name string) error {
	answer, err := http.Get("http://" + address + "/v1/clients/" + name)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered with %s", name, answer.Status)
	}
	return nil
}

func write(r *bench.Run, f figures) {
	if want := strings.ReplaceAll(bench.Count(f.clients), " ", ",") + " added, 0 changed, 0 deleted, 0 unchanged, in "; !strings.HasPrefix(f.said, want) {
		r.Fatalf("the import of %d clients said %q", f.clients, f.said)
	}
	table := bench.NewTable(bench.Things(f.clients, "client"), "measured")
	for _, row := range []struct {
		what   string
		figure float64
	}{
		{"import, s", f.took.Seconds()},
		{"processor time of the import, s", f.importing.Seconds()},
		{"processor time of weir, s", f.serving.Seconds()},
		{"processor time of Redis, s", f.storing.Seconds()},
		{"start of another instance, s", f.start.Seconds()},
		{"bytes for a client in Redis", f.inRedis},
		{"bytes for a client in weir", f.inDirectory},
		{"bytes for a client of a process that has just started", f.started},
	} {
		table.Row("%s|%.2f", row.what, row.figure)
	}
	aims := []bench.Aim{
		{What: "bytes for a client in Redis", Bound: 700, Measured: f.inRedis},
		{What: "bytes for a client in weir", Bound: 250, Measured: f.inDirectory},
	}
	if f.clients >= million {
		aims = append(aims, bench.Aim{What: "import of a million clients, s", Bound: 60, Measured: f.took.Seconds() * million / float64(f.clients)})
	}
	r.Write("clients.txt", bench.Describe(), "weir clients import said: "+f.said, table,
		"The import includes reading the file, which it does before it sends anything. A client has a parent and a\nnote. A process that has just started also has what the garbage collector has not returned yet.",
		bench.Aims("", aims))
}

const million = 1_000_000
