package redis

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// takerURL tells a process of this test binary to be one of several takers.
const takerURL = "WEIR_TEST_TAKER_URL"

// oneLimit is used by all processes: every algorithm, and every one of the tests
// long before anything comes back.
func oneLimit() []*weir.Compiled {
	var all []*weir.Compiled
	for _, algorithm := range append(weir.Algorithms(), weir.InFlight) {
		all = append(all, weir.MustCompile(algorithm.String()+" 57/3650d"))
	}
	return append(all, weir.MustCompile("leaky_bucket 57/3650d shape"))
}

// Four processes on one limit allow exactly N together.
func TestFourProcesses(t *testing.T) {
	if url := os.Getenv(takerURL); url != "" {
		takeAll(t, url)
		return
	}
	server := testredis.Start(t)
	var wg sync.WaitGroup
	outputs := make([]bytes.Buffer, 4)
	for i := range outputs {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestFourProcesses$", "-test.v")
			cmd.Env = append(os.Environ(), takerURL+"="+single(server.Addr)+"?timeout=10s")
			cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d: %v\n%s", i+1, err, &outputs[i])
			}
		})
	}
	wg.Wait()
	for j, limit := range oneLimit() {
		sum, shares := 0, []int{}
		for i := range outputs {
			share := share(t, outputs[i].String(), j)
			shares = append(shares, share)
			sum += share
		}
		t.Logf("%s: %v", limit.Limit(), shares)
		if sum != 57 {
			t.Errorf("%s: %v are %d allowed, want 57", limit.Limit(), shares, sum)
		}
	}
}

// takeAll is one process: 8 goroutines take from each limit until they are denied.
func takeAll(t *testing.T, url string) {
	s, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for j, limit := range oneLimit() {
		var mu sync.Mutex
		var wg sync.WaitGroup
		allowed := 0
		for range 8 {
			wg.Go(func() {
				for {
					d, err := s.Take(t.Context(), nil, weir.Op{Key: fmt.Sprint("k", j), Limit: limit, Cost: 1})
					if err != nil {
						t.Error(err)
						return
					}
					if !d[0].Allowed {
						return
					}
					mu.Lock()
					allowed++
					mu.Unlock()
					time.Sleep(time.Millisecond) // so that each process gets a share
				}
			})
		}
		wg.Wait()
		fmt.Printf("\nallowed %d: %d\n", j, allowed)
	}
}

// share finds how much a process was allowed.
func share(t *testing.T, output string, limit int) int {
	t.Helper()
	for line := range strings.Lines(output) {
		var at, n int
		if _, err := fmt.Sscanf(line, "allowed %d: %d", &at, &n); err == nil && at == limit {
			return n
		}
	}
	t.Fatalf("a process did not say how much it was allowed:\n%s", output)
	return 0
}

// dyingURL tells a process of this test binary to take places and wait for its death.
const dyingURL = "WEIR_TEST_DYING_URL"

// 10,000 requests are in flight in a process that is killed. Their places are free when the
// time is over, and not before.
func TestKilledProcessFreesItsPlaces(t *testing.T) {
	limit := weir.MustCompile("in_flight 10000/1h")
	if url := os.Getenv(dyingURL); url != "" {
		takePlaces(t, url, limit)
		return
	}
	server := testredis.Start(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledProcessFreesItsPlaces$")
	cmd.Env = append(os.Environ(), dyingURL+"="+single(server.Addr)+"?timeout=10s")
	stdout := testkit.Must(cmd.StdoutPipe())(t)
	testkit.OK(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	testkit.OK(t, cmd.Process.Kill())
	cmd.Wait()
	if err != nil || line != "all places are taken\n" {
		t.Fatalf("%q, %v", line, err)
	}
	later := func(d time.Duration) weir.Decision {
		now := weir.MicrosOf(time.Now().Add(d))
		s := storeOn(t, clientOf(t, server), Options{Clock: func() weir.Micros { return now }})
		return testkit.Must(s.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}))(t)[0]
	}
	if d := later(0); d.Allowed || d.RetryAfter > time.Hour {
		t.Errorf("after the death: %+v", d)
	}
	if d := later(time.Hour); d.Remaining != 10_000 {
		t.Errorf("an hour later: %+v", d)
	}
}

// takePlaces takes all places, says so, and waits.
func takePlaces(t *testing.T, url string, limit *weir.Compiled) {
	s := testkit.Must(Open(url))(t)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 100 {
				if d, err := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}); err != nil || !d[0].Allowed {
					t.Errorf("%+v, %v", d, err)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("all places are taken")
	select {}
}
