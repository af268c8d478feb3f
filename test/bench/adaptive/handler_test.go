package adaptive

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// handlerFigure is how a real handler did.
type handlerFigure struct {
	answered        float64 // per second, within a second each
	p50, p99        time.Duration
	denied, offered int
}

const (
	places     = 8                     // of the handler, such as connections to a database
	takes      = 20 * time.Millisecond // of a request
	twice      = 2 * places * int(time.Second/takes)
	handlerRun = 10 * time.Second
)

// writeHandler sends a server twice what its handler can answer, over the loopback, without a
// limiter and with weir.
func writeHandler(r *bench.Run) {
	pool := make(chan struct{}, places)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pool <- struct{}{}
		time.Sleep(takes)
		<-pool
	})
	began := time.Now()
	l := overload.New(minLimit, maxLimit)
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.Acquire(time.Since(began), overload.Normal) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer func() { l.Release(time.Since(began), overload.Success) }()
		handler.ServeHTTP(w, r)
	})
	table := bench.NewTable("limiter", "responses per second", "p50", "p99", "share denied")
	for i, name := range []string{"no limiter", "weir"} {
		h := offer([]http.Handler{handler, limited}[i])
		table.Row("%s|%.0f|%v|%v|%.2f", name, h.answered, h.p50.Round(1e6), h.p99.Round(1e6), float64(h.denied)/float64(h.offered))
	}
	r.Write(Files[0], fmt.Sprintf("A real handler with %d places, %v a request, offered 2 × its capacity of %d requests per second for %v; %v.",
		places, takes, twice/2, handlerRun, bench.Describe()), table,
		fmt.Sprintf("A request takes %d ns of processor time in weir's limiter, with two readings of the clock; the aim is at most 300.", testkit.Must(cost())(r).Nanoseconds()))
}

func offer(h http.Handler) (f handlerFigure) {
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 5000}}
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 1))
	begin := time.Now()
	for next := time.Duration(0); next < handlerRun; next += time.Duration(random.ExpFloat64() / float64(twice) * 1e9) {
		time.Sleep(next - time.Since(begin))
		f.offered++
		wg.Go(func() {
			start := time.Now()
			res, err := client.Get(server.URL)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if res.StatusCode == http.StatusOK {
				took = append(took, time.Since(start))
			} else {
				f.denied++
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	f.answered = float64(len(took)) / handlerRun.Seconds()
	if n := len(took); n > 0 {
		f.p50, f.p99 = took[n/2], took[n*99/100]
	}
	return f
}

// cost is the processor time of a request in the limiter, with two readings of the clock.
func cost() (time.Duration, error) {
	const n = 10_000_000
	busy, err := bench.Busy(func() error {
		l := overload.New(minLimit, maxLimit)
		began := time.Now()
		for range n {
			if l.Acquire(time.Since(began), overload.Normal) {
				l.Release(time.Since(began), overload.Success)
			}
		}
		return nil
	}, os.Getpid())
	return busy / n, err
}
