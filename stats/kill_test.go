package stats

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats/archive"
)

// recorderURL tells a process of this test binary to record at an address of Redis
// until it is killed.
const recorderURL = "WEIR_TEST_RECORDER"

// hurry is how much faster time passes there: an hour in 120 ms.
const hurry = 30_000

// fast is a clock that hurries, the same in all processes.
func fast(begin time.Time) func() time.Time {
	return func() time.Time { return noon.Add(hurry * time.Since(begin)) }
}

// recordUntilKilled records requests, flushes and rolls up without end. Before each
// flush it says how many requests it has counted, and afterwards how many have arrived.
func recordUntilKilled(arg string) {
	addr, begun, _ := strings.Cut(arg, " ")
	var nanos int64
	fmt.Sscan(begun, &nanos)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		panic(err)
	}
	a, err := archiveredis.Open(redislink.Given(client), archiveredis.Options{Timeout: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	r, err := New(Options{Archive: a, Clock: fast(time.Unix(0, nanos))})
	if err != nil {
		panic(err)
	}
	v := &engine.Verdict{Allowed: true}
	for n := int64(0); ; {
		for range 1 + rand.IntN(100) {
			r.Observe(&alice, v, time.Microsecond)
			n++
		}
		fmt.Println("counted", n)
		if err := r.Flush(context.Background()); err != nil {
			panic(err)
		}
		fmt.Println("arrived", n)
	}
}

// instance is such a process.
type instance struct {
	cmd              *exec.Cmd
	counted, arrived int64
	done             chan struct{}
}

func startInstance(t *testing.T, arg string) *instance {
	t.Helper()
	i := &instance{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	i.cmd.Env = append(os.Environ(), recorderURL+"="+arg)
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	go func() {
		defer close(i.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Sscanf(lines.Text(), "counted %d", &i.counted)
			first := i.arrived == 0
			if n, _ := fmt.Sscanf(lines.Text(), "arrived %d", &i.arrived); n == 1 && first {
				close(begun)
			}
		}
	}()
	select {
	case <-begun:
	case <-time.After(2 * time.Minute):
		t.Fatal("a process does not begin to record")
	}
	return i
}

func (i *instance) kill() {
	i.cmd.Process.Kill()
	<-i.done
	i.cmd.Wait()
}

// Processes that record and roll up at the same time are killed in the middle of it,
// again and again, and others take their place. Every level has the same sum, which is
// everything that has arrived, and nothing twice.
func TestKilledInTheMiddle(t *testing.T) {
	server := testredis.Start(t)
	begin := time.Now()
	arg := fmt.Sprintf("%s %d", server.Addr, begin.UnixNano())
	least, most := int64(0), int64(0)
	instances := []*instance{startInstance(t, arg), startInstance(t, arg)}
	for range 12 {
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond) // it is killed anywhere
		victim := rand.IntN(len(instances))
		instances[victim].kill()
		least, most = least+instances[victim].arrived, most+instances[victim].counted
		instances[victim] = startInstance(t, arg)
	}
	for _, i := range instances {
		i.kill()
		least, most = least+i.arrived, most+i.counted
	}

	client := redisClient(t, server.Addr)
	a, err := archiveredis.Open(redislink.Given(client), archiveredis.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clock := fast(begin)
	from, to := noon.Unix(), clock().Unix()+1
	for _, when := range []string{"as it was left", "rolled up"} {
		var sums []int64
		for level, l := range a.Levels(archive.Series) {
			sum := int64(0)
			piece := 5000 * l.Step
			for at := l.Start(from); at < to; at += piece {
				slots, err := a.Read(t.Context(), archive.Series, level, at, min(at+piece, to))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range slots {
					sum += s.Frame.Requests.Total()
					if s.Frame.Decision.Count != s.Frame.Requests.Total() {
						t.Errorf("level %d: %d requests, %d timed", level, s.Frame.Requests.Total(), s.Frame.Decision.Count)
					}
				}
			}
			sums = append(sums, sum)
		}
		t.Logf("%s: %v, between %d and %d, in %v", when, sums, least, most, time.Duration(to-from)*time.Second)
		for level, sum := range sums {
			if sum != sums[0] || sum < least || sum > most {
				t.Errorf("%s: level %d has %d, the others %v; want %d to %d", when, level, sum, sums, least, most)
			}
		}
		if err := a.RollUp(t.Context(), clock().Add(48*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

func redisClient(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, DisableRetry: true, ConnWriteTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A month of traffic, in which the busiest hour has a thousand times the requests of
// the quietest, comes to the same sums at all four levels.
func TestMonth(t *testing.T) {
	keep := archive.Keep{Second: 2 * time.Hour, Minute: 36 * time.Hour, Hour: 32 * 24 * time.Hour, Day: 400 * 24 * time.Hour}
	a, err := archive.NewMemory(keep)
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock(noon)
	r := newRecorder(t, Options{Archive: a, Clock: clock.now})
	chance := rand.New(rand.NewPCG(1, 2))
	v := &engine.Verdict{Allowed: true}
	var history []second
	end := noon.Add(30 * 24 * time.Hour)
	for clock.now().Before(end) {
		// Every second in the last two hours, every minute or so while minutes are kept, and now
		// and then before.
		step := time.Second
		switch left := end.Sub(clock.now()); {
		case left > keep.Minute:
			step = time.Duration(1+chance.IntN(900)) * time.Second
		case left > 2*time.Hour:
			step = time.Duration(1+chance.IntN(90)) * time.Second
		}
		r.tick(clock.now())
		n := chance.IntN(2 + clock.now().Hour()*clock.now().Hour()/8)
		for i := range n {
			v.Allowed = i%7 != 0
			r.Observe(&alice, v, time.Duration(1+i)*time.Microsecond)
		}
		history = append(history, second{clock.now().Unix(), int64(n), int64((n + 6) / 7)})
		clock.advance(step)
		r.tick(clock.now())
		r.sendAll(t.Context())
	}
	flush(t, r)
	spans := []time.Duration{100 * time.Minute, 35 * time.Hour, 30 * 24 * time.Hour, 30 * 24 * time.Hour}
	for level, l := range a.Levels(archive.Series) {
		for finer := 0; finer <= level; finer++ {
			// Over what the finer level still has, both say the same, and the truth.
			from := a.Levels(archive.Series)[level].Start(end.Add(-spans[finer]).Unix()) + l.Step
			if finer == level {
				from = l.Start(end.Add(-spans[level]).Unix()) // aligned, it may begin before the month
			}
			want := archive.Counts{}
			for _, s := range history {
				if s.at >= from {
					want.Allowed += s.n - s.denied
					want.Denied += s.denied
				}
			}
			got := archive.Counts{}
			for at := from; at < end.Unix(); at += 5000 * a.Levels(archive.Series)[finer].Step {
				slots, err := a.Read(t.Context(), archive.Series, finer, at, min(end.Unix(), at+5000*a.Levels(archive.Series)[finer].Step))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range slots {
					got.Add(s.Frame.Requests)
				}
			}
			if got != want || want.Total() == 0 && end.Unix()-from > l.Step {
				t.Errorf("level %d, from a boundary of level %d on: %+v, want %+v", finer, level, got, want)
			}
		}
	}
	size := a.Size()
	t.Logf("%d requests in %d seconds are %d slots of %d bytes", total(history), len(history), size.Slots, size.Bytes)
}

type second struct{ at, n, denied int64 }

func total(history []second) (n int64) {
	for _, s := range history {
		n += s.n
	}
	return n
}
