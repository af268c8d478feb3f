package envoy

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/traffic/loadgen"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// maxInFlight bounds the open loop. A request that would exceed it is not sent, and counts
// as one whose caller gave up.
const maxInFlight = 1000

// schedule returns when requests leave, from the start of a round: Poisson arrivals, as of
// many clients that know nothing of each other. There is at least one.
func schedule(rate float64, length time.Duration, seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(0x6f70656e, seed))
	out := []time.Duration{0}
	for at := 0.0; ; {
		if at += random.ExpFloat64() / rate; at >= length.Seconds() {
			return out
		}
		out = append(out, time.Duration(at*float64(time.Second)))
	}
}

// loop is an open loop under way. Its workers stay: with a goroutine for each request, the median
// of a server that does nothing was 7 to 16 % longer, by a client that it is not about.
type loop struct {
	send  func(n int) error // the request of that number
	due   []time.Duration   // when it leaves, from the beginning
	took  []time.Duration   // from then to the answer
	begin time.Time

	mu      sync.Mutex
	idle    []chan int // workers; who worked last is the next, because its memory is at hand
	workers int
	over    bool
	err     error

	all sync.WaitGroup
}

// open sends requests when they are due, whatever the answers do. A request's time counts
// from when it was due, not from when it left: otherwise one that had to wait for the
// client would seem fast.
func (s *stock) open(ctx context.Context, due []time.Duration) (bench.Round, error) {
	order := bench.NewOrder(0, len(s.requests), bench.Short)
	return openAt(ctx, due, func(ctx context.Context, n int) error { return s.ask(ctx, order.At(n)) })
}

func openAt(ctx context.Context, due []time.Duration, send func(ctx context.Context, n int) error) (bench.Round, error) {
	ctx, cancel := context.WithTimeout(ctx, due[len(due)-1]+giveUp)
	defer cancel()
	p, err := newPacer()
	if err != nil {
		return bench.Round{}, err
	}
	defer p.close()
	return openLoop(due, maxInFlight, p.until, func(n int) error { return send(ctx, n) })
}

// openLoop sends each request when the wait until it is due is over.
func openLoop(due []time.Duration, inFlight int, until func(time.Time) error, send func(n int) error) (bench.Round, error) {
	l := &loop{send: send, due: due, took: make([]time.Duration, len(due)), begin: time.Now()}
	var out bench.Round
	var err error
	for n := 0; n < len(due) && err == nil; n++ {
		if err = until(l.begin.Add(due[n])); !l.hand(n, inFlight) {
			out.Unsent++
			l.took[n] = giveUp
		}
	}
	l.end()
	var all loadgen.Histogram
	for _, took := range l.took {
		all.Record(took)
	}
	out.Wall, out.Done = time.Since(l.begin), len(due)-out.Unsent
	out.Tell(&all)
	return out, errors.Join(err, l.err)
}

// hand gives a request to a worker. It reports whether there is one.
func (l *loop) hand(n, inFlight int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.idle) - 1; last >= 0 {
		l.idle[last] <- n // there is room for it
		l.idle = l.idle[:last]
		return true
	}
	if l.workers == inFlight {
		return false
	}
	l.workers++
	next := make(chan int, 1)
	next <- n
	l.all.Go(func() { l.work(next) })
	return true
}

// work sends what it is handed.
func (l *loop) work(next chan int) {
	for n := range next {
		err := l.send(n)
		l.took[n] = time.Since(l.begin) - l.due[n]
		l.mu.Lock()
		if err != nil {
			l.err = err
		}
		l.idle = append(l.idle, next)
		if l.over {
			close(next)
		}
		l.mu.Unlock()
	}
}

// end waits for the last answers.
func (l *loop) end() {
	l.mu.Lock()
	l.over = true
	for _, w := range l.idle {
		close(w)
	}
	l.mu.Unlock()
	l.all.Wait()
}
