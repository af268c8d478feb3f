package adaptive

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/adaptive"
	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

// HandlerFigure is how a real handler did.
type HandlerFigure struct {
	Name            string
	Answered        float64 // per second, within a second each
	P50, P99        time.Duration
	Denied, Offered int
}

const (
	places     = 8                     // of the handler, such as connections to a database
	takes      = 20 * time.Millisecond // of a request
	twice      = 2 * places * int(time.Second/takes)
	handlerRun = 10 * time.Second
)

// measureHandler sends a server twice what its handler can answer, over the loopback.
func measureHandler() []HandlerFigure {
	pool := make(chan struct{}, places)
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pool <- struct{}{}
		time.Sleep(takes)
		<-pool
	})
	began := time.Now()
	l := adaptive.New(minLimit, maxLimit)
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.Acquire(time.Since(began), priority.Normal) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer func() { l.Release(time.Since(began), adaptive.Success) }()
		handler.ServeHTTP(w, r)
	})
	return []HandlerFigure{offer("no limiter", handler), offer("weir", limited)}
}

func offer(name string, h http.Handler) HandlerFigure {
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 5000}}
	f := HandlerFigure{Name: name}
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 1))
	begin := time.Now()
	for next := time.Duration(0); next < handlerRun; next += time.Duration(random.ExpFloat64() / float64(twice) * 1e9) {
		time.Sleep(next - time.Since(begin))
		f.Offered++
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
				f.Denied++
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	f.Answered = float64(len(took)) / handlerRun.Seconds()
	if n := len(took); n > 0 {
		f.P50, f.P99 = took[n/2], took[n*99/100]
	}
	return f
}

// cost is the processor time of a request in the limiter, with two readings of the clock.
func cost() (time.Duration, error) {
	const n = 10_000_000
	before, err := machine.CPU(os.Getpid())
	if err != nil {
		return 0, err
	}
	l := adaptive.New(minLimit, maxLimit)
	began := time.Now()
	for range n {
		if l.Acquire(time.Since(began), priority.Normal) {
			l.Release(time.Since(began), adaptive.Success)
		}
	}
	after, err := machine.CPU(os.Getpid())
	return (after - before) / n, err
}
