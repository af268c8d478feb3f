package lease

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
)

// world runs stores in virtual time: one event after the other, in the same order for the same seed. Stores call as they
// always do. The goroutine that waits for an answer hands the world over to another one, so that only one of them runs.
type world struct {
	now    time.Duration
	seq    int64
	events order.Heap[*event]
	idle   chan chan struct{} // goroutines that do not wait for an answer
	done   chan struct{}
}

// event is something that happens, or a goroutine that goes on.
type event struct {
	at    time.Duration
	seq   int64 // of two at the same time, the one that was planned first
	do    func()
	wake  chan struct{}
	index int32
}

func (e *event) Before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}
func (e *event) Index() *int32 { return &e.index }

func (w *world) plan(e *event) {
	w.seq++
	e.seq = w.seq
	w.events.Push(e)
}

func (w *world) at(at time.Duration, do func()) { w.plan(&event{at: at, do: do}) }

// run lets everything happen that is planned.
func (w *world) run() {
	w.idle, w.done = make(chan chan struct{}, 1<<20), make(chan struct{})
	go w.loop()
	<-w.done
	for len(w.idle) > 0 {
		close(<-w.idle)
	}
}

func (w *world) loop() {
	mine := make(chan struct{})
	for len(w.events) > 0 {
		e := w.events[0]
		w.events.Remove(e)
		w.now = e.at
		if e.do != nil {
			e.do()
			continue
		}
		w.idle <- mine
		e.wake <- struct{}{}
		if _, ok := <-mine; !ok {
			return
		}
	}
	close(w.done)
}

// wait lets other things happen for a while.
func (w *world) wait(d time.Duration) {
	wake := make(chan struct{}, 1)
	w.plan(&event{at: w.now + d, wake: wake})
	select {
	case other := <-w.idle:
		other <- struct{}{}
	default:
		go w.loop()
	}
	<-wake
}

// dawn is when a world begins, at the beginning of every window.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *world) micros() weir.Micros { return weir.MicrosOf(dawn).Add(w.now) }

// far is a store that answers after a round trip.
type far struct {
	*reference
	w     *world
	trip  time.Duration
	calls int64
}

func (f *far) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	f.calls++
	f.w.wait(f.trip / 2)
	defer f.w.wait(f.trip / 2)
	return f.reference.Take(ctx, dst, ops...)
}

func (f *far) Lease(ctx context.Context, dst []weir.LeaseAnswer, ops ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	f.calls++
	f.w.wait(f.trip / 2)
	defer f.w.wait(f.trip / 2)
	return f.reference.Lease(ctx, dst, ops...)
}

// instance is a process.
type instance struct {
	*Store
	w    *world
	next time.Duration // when its background work is planned
	dead bool
}

// look does what is due in the background, and plans when to look again.
func (i *instance) look() {
	for !i.dead && !i.closing.Load() {
		e, wait := i.due()
		if e != nil {
			i.w.at(i.w.now, func() { i.report(e); i.look() })
			continue
		}
		if wait != never && (i.next <= i.w.now || i.w.now+wait < i.next) {
			i.next = i.w.now + wait
			at := i.next
			i.w.at(at, func() {
				if i.next == at {
					i.look()
				}
			})
		}
		return
	}
}

// trace is what is simulated.
type trace struct {
	limit     string
	lease     time.Duration // 0: a second
	instances int
	trip      time.Duration
	rate      float64 // requests a second, of all instances and keys
	keys      int     // 0: one
	span      time.Duration
	skew      bool // nine tenths come to one instance, another one each second
	kills     bool // an instance is killed each second, and another one starts
	seed      uint64

	arrived func(at time.Duration, instance int) // hears of each request; nil if nobody wants to know
}

// outcome is what came of it.
type outcome struct {
	requests, allowed, exact int64
	worst                    float64       // allowed ÷ exact, of the window in which this is least
	over                     int64         // units beyond what the algorithm allows in any window
	calls, first, waited     int64         // first: calls in the first second, when nothing is known of the keys
	p50, p99                 time.Duration // of decisions
	idle                     int64         // the most units that were on lease and not spent, at an instant
	killed                   int64         // units that were lost with instances
	asked, messages          int64         // of instances that were not killed, as in Stats
}

func (o *outcome) ratio() float64       { return float64(o.allowed) / float64(o.exact) }
func (o *outcome) perCheck() float64    { return float64(o.calls) / float64(o.requests) }
func (o *outcome) waitedShare() float64 { return float64(o.waited) / float64(o.requests) }

// simulate lets a trace happen.
func simulate(tr trace) outcome {
	w := new(world)
	var o outcome
	limit := weir.MustCompile(tr.limit)
	period := max(limit.Limit().Period, time.Second)
	random := rand.New(rand.NewPCG(tr.seed, 1))
	store, exact := newReference(w.micros), newReference(w.micros)
	links := make([]*far, tr.instances)
	instances := make([]*instance, tr.instances)
	seed := maphash.MakeSeed()
	open := func(i int) {
		if links[i] == nil {
			links[i] = &far{reference: store, w: w, trip: tr.trip}
		}
		s := New(links[i], Options{Term: cmp.Or(tr.lease, time.Second), Clock: func() (time.Time, time.Duration) { return dawn.Add(w.now), w.now }})
		s.seed = seed
		s.started.Store(true) // the world does what is to be done in the background
		instances[i] = &instance{Store: s, w: w}
	}
	for i := range instances {
		open(i)
	}
	keys := separateKeys(max(1, tr.keys), limit, instances[0].Store)
	zipf := rand.NewZipf(random, 1.01, 1, uint64(len(keys)-1))
	journals := make(map[string]*journal)
	windows, exactly := make(map[time.Duration]int64), make(map[time.Duration]int64)
	var waits []time.Duration
	ctx := context.Background()

	var arrive func()
	plan := func() {
		if at := w.now + time.Duration(random.ExpFloat64()*float64(time.Second)/tr.rate); at < tr.span {
			w.at(at, arrive)
		}
	}
	arrive = func() {
		plan()
		start, k := w.now, keys[0]
		if len(keys) > 1 {
			k = keys[zipf.Uint64()]
		}
		at := pick(random, &tr, start)
		if tr.arrived != nil {
			tr.arrived(start, at)
		}
		i := instances[at]
		op := weir.Op{Key: k, Limit: limit, Cost: 1}
		o.requests++
		if d, _ := exact.Take(ctx, nil, op); d[0].Allowed {
			o.exact++
			exactly[start/period]++
		}
		d, err := i.Take(ctx, nil, op)
		if i.dead || err != nil {
			return
		}
		waits = append(waits, w.now-start)
		if w.now > start {
			o.waited++
		}
		if d[0].Allowed {
			at := w.now
			if d[0].Receipt < localReceipt { // when the store decided it
				at = time.Duration(d[0].ResetAt-weir.Micros(d[0].ResetAfter/time.Microsecond)-weir.MicrosOf(dawn)) * time.Microsecond
			}
			o.allowed++
			windows[at/period]++
			if journals[k] == nil {
				journals[k] = new(journal)
			}
			journals[k].all = append(journals[k].all, admission{weir.Micros(at / time.Microsecond), 1})
		}
		i.look()
	}
	plan()
	for at := time.Second; tr.kills && at < tr.span; at += time.Second {
		w.at(at, func() {
			i := int(at/time.Second) % len(instances)
			instances[i].dead = true
			o.killed += instances[i].leased()
			open(i)
		})
	}
	w.at(time.Second, func() {
		for _, l := range links {
			o.first += l.calls
		}
	})
	for at := time.Duration(0); at < tr.span; at += 10 * time.Millisecond {
		w.at(at, func() {
			var held int64
			for _, i := range instances {
				held += i.leased()
			}
			o.idle = max(o.idle, held)
		})
	}
	w.at(tr.span, func() {
		for _, i := range instances {
			i.dead = true
		}
	})
	w.run()
	for _, l := range links {
		o.calls += l.calls
	}
	for _, i := range instances {
		stats := i.Stats()
		o.asked, o.messages = o.asked+stats.Asked, o.messages+stats.Messages
	}
	o.worst = math.Inf(1)
	for at, n := range exactly {
		if at > 0 && (at+1)*period <= tr.span && n > 100 { // the first window is that of a cold start
			o.worst = min(o.worst, float64(windows[at])/float64(n))
		}
	}
	for _, j := range journals {
		o.over = max(o.over, j.beyond(limit))
	}
	slices.Sort(waits)
	o.p50, o.p99 = waits[len(waits)/2], waits[len(waits)*99/100]
	return o
}

// leased is how many units can be spent here.
func (i *instance) leased() int64 {
	if i.keys.Load() == 0 {
		return 0
	}
	return i.Stats().Leased
}

// beyond is how many units were more than the limit allows.
func (j *journal) beyond(limit *weir.Compiled) int64 {
	period := weir.Micros(limit.Limit().Period / time.Microsecond)
	over := j.worst(period) - limit.Bound(1)
	if limit.Algorithm() == weir.FixedWindow {
		windows := map[weir.Micros]int64{}
		for _, a := range j.all {
			windows[a.at/period] += a.units
			over = max(over, windows[a.at/period]-limit.Capacity())
		}
	}
	return max(0, over)
}

// pick returns the instance that a request comes to.
func pick(random *rand.Rand, tr *trace, at time.Duration) int {
	if tr.skew && random.IntN(10) > 0 {
		return int(at/time.Second) % tr.instances
	}
	return random.IntN(tr.instances)
}

// separateKeys returns keys of which no two are in the same place of the table of sightings, because a hash has another seed in each run.
func separateKeys(n int, limit *weir.Compiled, s *Store) []string {
	var all []string
	taken := make(map[uint64]bool)
	for i := 0; len(all) < n; i++ {
		name := fmt.Sprint("key", i)
		hash := maphash.String(s.seed, name)
		key := (hash ^ limit.Kind()*0x9e3779b97f4a7c15) | 1
		if slot := hash%shardCount*sightings + key/shardCount%sightings; !taken[slot] {
			taken[slot] = true
			all = append(all, name)
		}
	}
	return all
}
