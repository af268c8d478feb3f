package redis

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
)

// What tells a process of this test binary to be a worker: where Redis is, and whether to
// finish what it begins.
const (
	workerAddr = "WEIR_TEST_QUEUE_WORKER"
	workerMode = "WEIR_TEST_QUEUE_MODE" // "", "mortal", or "hang" for one that is mortal and finishes nothing
)

// jobs is the queue of these tests. The pace is no whole number of microseconds. A machine may
// stand still for seconds, which must not look like the death of a worker.
var jobs = queueWith(10 * time.Minute)

func queueWith(visibility time.Duration) map[string]queue.Settings {
	return map[string]queue.Settings{"jobs": {
		N: 300, Period: 1001 * time.Millisecond, Capacity: 10_000, Visibility: visibility, MaxTries: 3,
	}}
}

// mortal is the queue of workers that die.
var mortal = queueWith(5 * time.Second)

// note writes down an item by Redis's own clock: number, tries, release, and now.
var note = rueidis.NewLuaScript(`local t = redis.call('TIME')
return redis.call('RPUSH', KEYS[1], ARGV[1] .. ' ' .. string.format('%.0f', t[1] * 1000000 + t[2]))`)

func noteDown(client rueidis.Client, l queue.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	line := fmt.Sprintf("%d %d %d", l.Number, l.Tries, l.Release)
	return note.Exec(ctx, client, []string{"begun"}, []string{line}).Error()
}

// begun is what workers wrote down.
type begun struct {
	number  int64
	tries   int
	release weir.Micros
	at      weir.Micros
}

func begunIn(t *testing.T, server *testredis.Server) (all []begun) {
	t.Helper()
	for line := range strings.Lines(server.Do("LRANGE", "begun", "0", "-1")) {
		var b begun
		if _, err := fmt.Sscan(line, &b.number, &b.tries, &b.release, &b.at); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, b)
	}
	return all
}

// TestWorkerProcess is no test: it is a worker, if told so. It stops when its input ends.
func TestWorkerProcess(t *testing.T) {
	addr := os.Getenv(workerAddr)
	if addr == "" {
		return
	}
	client := clientOf(t, addr)
	declared := jobs
	if os.Getenv(workerMode) != "" {
		declared = mortal
	}
	store := storeOn(t, client, declared, Options{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Println("worker is up")
	err := queue.Run(ctx, store, "jobs", func(ctx context.Context, l queue.Lease) error {
		if err := noteDown(client, l); err != nil {
			t.Error(err)
		}
		if os.Getenv(workerMode) == "hang" {
			<-ctx.Done()
		}
		return nil
	}, queue.RunOptions{Workers: 3, Report: func(err error) { t.Error(err) }})
	if err != nil {
		t.Error(err)
	}
}

// worker is such a process.
type worker struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.Closer
	text  strings.Builder
	ended chan struct{}
}

func startWorker(t *testing.T, server *testredis.Server, mode string) *worker {
	t.Helper()
	w := &worker{t: t, cmd: exec.Command(os.Args[0], "-test.run", "^TestWorkerProcess$"), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerAddr+"="+server.Addr, workerMode+"="+mode)
	w.cmd.Stderr = os.Stderr
	input, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.input = input
	output, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan struct{})
	go func() {
		defer close(w.ended)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if lines.Text() == "worker is up" {
				close(up)
			}
			w.text.WriteString(lines.Text() + "\n")
		}
	}()
	t.Cleanup(w.kill)
	select {
	case <-up:
	case <-w.ended:
		t.Fatalf("the worker has ended: %s", &w.text)
	}
	return w
}

// kill is kill -9.
func (w *worker) kill() {
	w.cmd.Process.Kill()
	<-w.ended
	w.cmd.Wait()
}

// stop is what a deployment does, and expects that all went well.
func (w *worker) stop() {
	w.t.Helper()
	w.input.Close()
	<-w.ended
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("a worker: %v\n%s", err, &w.text)
	}
}

func eventually(t *testing.T, what string, good func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for !good() {
		select {
		case <-late:
			t.Fatalf("there is never %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func pushAll(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := range n {
		if _, err := s.Push(t.Context(), "jobs", queue.Work{Payload: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Four processes with three workers each never exceed the pace together, by Redis's own
// clock; each item is begun once, and released in order.
func TestFourProcesses(t *testing.T) {
	server := testredis.Start(t)
	store := storeOn(t, clientOf(t, server.Addr), jobs, Options{})
	var workers []*worker
	for range 4 {
		workers = append(workers, startWorker(t, server, ""))
	}
	const many = 600
	pushAll(t, store, many)
	eventually(t, "an empty queue", func() bool {
		st, err := store.Stats(t.Context(), "jobs")
		return err == nil && st.Length() == 0
	})
	for _, w := range workers {
		w.stop()
	}
	all := begunIn(t, server)
	if len(all) != many {
		t.Fatalf("%d were begun, want %d", len(all), many)
	}
	byNumber := slices.SortedFunc(slices.Values(all), func(a, b begun) int { return cmp.Compare(a.number, b.number) })
	checkPace(t, byNumber)
	for _, b := range all {
		if b.tries != 1 {
			t.Errorf("%+v was tried before", b)
		}
		if b.at < b.release {
			t.Errorf("%+v began before its release", b)
		}
	}
	// Beginnings may be late, but by each of them no more have begun than were released.
	byTime := slices.SortedFunc(slices.Values(all), func(a, b begun) int { return cmp.Compare(a.at, b.at) })
	for i, b := range byTime {
		if earliest := byNumber[i].release; b.at < earliest {
			t.Errorf("number %d to begin did so %d µs before the pace", i, earliest-b.at)
		}
	}
	took := byNumber[many-1].release - byNumber[0].release
	t.Logf("%d releases in %.3f s, at the pace they are %.3f s", many, float64(took)/1e6, float64(many-1)*1.001/300)
}

// checkPace expects that between any two there is room for all that lie between them.
func checkPace(t *testing.T, all []begun) {
	t.Helper()
	terms := jobs["jobs"]
	for i := range all {
		for k := i + 1; k < len(all); k++ {
			// Each release is less than a microsecond after its exact slot.
			apart := int64(all[k].release-all[i].release) + 1
			if apart*terms.N <= int64(k-i)*terms.Period.Microseconds() {
				t.Fatalf("items %d to %d were released within %d µs", i, k, apart-1)
			}
		}
	}
}

// The item of a worker that is killed goes to another after the visibility time, and after
// three of them it is a dead letter.
func TestKilledWorkers(t *testing.T) {
	server := testredis.Start(t)
	store := storeOn(t, clientOf(t, server.Addr), mortal, Options{})
	visibility := weir.Micros(mortal["jobs"].Visibility.Microseconds())
	pushAll(t, store, 1)
	for try := range 3 {
		w := startWorker(t, server, "hang")
		eventually(t, "a beginning", func() bool { return len(begunIn(t, server)) == try+1 })
		if try == 1 {
			// As long as it lives it keeps the item.
			began := begunIn(t, server)[1].at
			eventually(t, "an extended lease", func() bool { return redisNow(server) > began+5*visibility/2 })
			if n := len(begunIn(t, server)); n != 2 {
				t.Errorf("%d beginnings while the second worker lives", n)
			}
		}
		w.kill()
	}
	eventually(t, "a dead letter", func() bool {
		st, err := store.Stats(t.Context(), "jobs")
		return err == nil && st.Dead == 1 && st.Length() == 0
	})
	all := begunIn(t, server)
	for i := 1; i < len(all); i++ {
		if all[i].tries != i+1 || all[i].release < all[i-1].release+visibility {
			t.Errorf("%+v came after %+v", all[i], all[i-1])
		}
	}
	letters, err := store.DeadLetters(t.Context(), "jobs", 0, 10)
	if err != nil || len(letters) != 1 || letters[0].Tries != 3 || letters[0].Reason != queue.Expired || len(all) != 3 {
		t.Errorf("%d beginnings, %+v, %v", len(all), letters, err)
	}
	// Somebody looks at it, and it is done at last.
	if n, err := store.Requeue(t.Context(), "jobs", letters[0].Number); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	w := startWorker(t, server, "mortal")
	eventually(t, "an empty queue", func() bool {
		st, err := store.Stats(t.Context(), "jobs")
		return err == nil && st.Length() == 0
	})
	w.stop()
}

func redisNow(server *testredis.Server) weir.Micros {
	var s, us int64
	fmt.Sscan(server.Do("TIME"), &s, &us)
	return weir.Micros(s*1_000_000 + us)
}
