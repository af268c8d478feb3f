package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/loadgen"
)

// Round is what one contestant did in one turn. What a suite does not measure is 0.
type Round struct {
	Callers        int
	Done           int // requests that were answered
	Unsent         int // besides, because too many were in flight
	Waited         int // of them, those that waited for a store
	Wall           time.Duration
	Mallocs        uint64
	P50, P99, P999 time.Duration // of a request
	First          time.Duration // until the first byte of an answer
	CPU            time.Duration // of the processes that were measured
	Memory         Memory        // of one of them
}

// What contestants are compared by: seconds in all, requests a second, wall time by requests, the time that one
// request takes its caller, allocations and processor time of a request.
func (r Round) Seconds() float64     { return r.Wall.Seconds() }
func (r Round) Rate() float64        { return float64(r.Done) / r.Wall.Seconds() }
func (r Round) Micros() float64      { return r.Wall.Seconds() * 1e6 / float64(r.Done) }
func (r Round) CallerNanos() float64 { return r.Micros() * 1e3 * float64(r.Callers) }
func (r Round) Allocs() float64      { return float64(r.Mallocs) / float64(r.Done) }
func (r Round) CPUMicros() float64   { return r.CPU.Seconds() * 1e6 / float64(max(r.Done, 1)) }
func (r Round) P50Nanos() float64    { return float64(r.P50) }
func (r Round) P99Nanos() float64    { return float64(r.P99) }
func (r Round) P999Nanos() float64   { return float64(r.P999) }
func (r Round) FirstNanos() float64  { return float64(r.First) }

// AtOnce does the work in so many goroutines, which all begin at one signal, and
// returns when the last has ended.
func AtOnce(callers int, work func(caller int)) Round {
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	for g := range callers {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			work(g)
		})
	}
	ready.Wait()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	close(start)
	done.Wait()
	wall := time.Since(begin)
	runtime.ReadMemStats(&after)
	return Round{Callers: callers, Wall: wall, Mallocs: after.Mallocs - before.Mallocs}
}

// Load is a closed loop: each caller asks again as soon as it is answered.
type Load struct {
	Callers int
	Count   int           // requests of each caller; 0 for as many as the time allows
	Length  time.Duration // of the round, without a count; each asks once, however late it is
	Timed   bool          // each request is
	Counted bool          // in a contest: a count of which a round takes about this long
}

// Run has all callers ask. An error ends the round.
func (l Load) Run(ask func(caller int) func(n int) error) (Round, error) {
	asks, done, errs := make([]func(int) error, l.Callers), make([]int, l.Callers), make([]error, l.Callers)
	took := make([]loadgen.Histogram, l.Callers)
	for g := range asks {
		asks[g] = ask(g)
	}
	var over atomic.Bool
	if l.Count == 0 {
		timer := time.AfterFunc(l.Length, func() { over.Store(true) })
		defer timer.Stop()
	}
	round := AtOnce(l.Callers, func(g int) {
		ask, n, err := asks[g], 0, error(nil)
		for err == nil && (l.Count == 0 || n < l.Count) {
			if l.Timed {
				begin := time.Now()
				err = ask(n)
				took[g].Record(time.Since(begin))
			} else {
				err = ask(n)
			}
			if n++; over.Load() {
				break
			}
		}
		done[g], errs[g] = n, err
	})
	for g := range done {
		round.Done += done[g]
		if g > 0 {
			took[0].Merge(&took[g])
		}
	}
	if l.Timed {
		round.Tell(&took[0])
	}
	return round, errors.Join(errs...)
}

// Tell takes over how long requests took.
func (r *Round) Tell(took *loadgen.Histogram) {
	r.P50, r.P99, r.P999 = took.Quantile(0.5), took.Quantile(0.99), took.Quantile(0.999)
}

// All has callers share what there is to do once, up to n. An error ends what its caller does.
func All(callers, n int, do func(i int) error) error {
	errs := make([]error, callers)
	AtOnce(callers, func(g int) {
		for i := g; i < n && errs[g] == nil; i += callers {
			errs[g] = do(i)
		}
	})
	return errors.Join(errs...)
}

// Denied is the error of a request that should have been allowed.
func Denied(decision any) error { return fmt.Errorf("denied: %+v", decision) }

// Allowed is an error unless a request was allowed.
func Allowed(d weir.Decision, err error) error {
	if err == nil && !d.Allowed {
		err = Denied(d)
	}
	return err
}

// AllAllowed is an error unless all limits have allowed a request.
func AllAllowed(all []weir.Decision, err error) error {
	if err == nil && !weir.Allowed(all) {
		err = Denied(all)
	}
	return err
}

// Keys returns n distinct keys as a server would see them, users and addresses
// by turns, in memory of their own. Two calls return equal keys in different
// places: a map that was filled with one set cannot recognise the other by its
// address, which a real request would not have in common either.
func Keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		if i%2 == 0 {
			keys[i] = fmt.Sprintf("user:%010d", i/2)
			continue
		}
		// An odd factor permutes the 32-bit numbers, so no address comes twice.
		ip := uint32(i/2) * 2654435761
		keys[i] = fmt.Sprintf("%d.%d.%d.%d", byte(ip>>24), byte(ip>>16), byte(ip>>8), byte(ip))
	}
	return keys
}

// Order is in which order a goroutine visits keys, again and again.
type Order []uint32

// At is the number of the key that is visited for the n-th time.
func (o Order) At(n int) int { return int(o[n&(len(o)-1)]) }

const (
	// Short is the length of an order that stays in the cache, and Long of one that no branch
	// predictor learns. Both are powers of two.
	Short = 1 << 14
	Long  = 1 << 20
)

// NewOrder returns one that is the same in every run and for every contestant, so that the
// measured loop needs no random numbers.
func NewOrder(goroutine, keys, length int) Order {
	random := rand.New(rand.NewPCG(0x77656972, uint64(goroutine)))
	order := make(Order, length)
	for i := range order {
		order[i] = random.Uint32N(uint32(keys))
	}
	return order
}

// NewOrders are those of so many goroutines.
func NewOrders(goroutines, keys, length int) []Order {
	orders := make([]Order, goroutines)
	for g := range orders {
		orders[g] = NewOrder(g, keys, length)
	}
	return orders
}
