package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// scene is the part of a run on one topology.
type scene struct {
	ctx      context.Context
	options  Options
	scope    *testkit.Scope
	topology plan.Topology
	keys     []string

	now      func() time.Duration
	deadline time.Duration
	line     *check.Timeline
	checker  *check.Checker
	store    store
	fleet    []*instance
	watch    *watch
	load     *load
	holders  *holders
	movers   *movers
	stop     context.CancelFunc
	running  sync.WaitGroup

	faults  map[plan.Kind]int
	samples []check.Sample
}

const (
	quietEvery = time.Minute
	rest       = 1500 * time.Millisecond // from the last answer to a sample
)

// warmUp is how long there is load before the first fault and the first sample.
func warmUp(share time.Duration) time.Duration { return min(15*time.Second, share/6) }

func newScene(ctx context.Context, o Options, h *testkit.Scope, t plan.Topology) *scene {
	begun := time.Now()
	return &scene{ctx: ctx, options: o, scope: h, topology: t, faults: map[plan.Kind]int{}, now: func() time.Duration { return time.Since(begun) }}
}

// play plays the scene for as long as its share of the run.
func (s *scene) play(share time.Duration, tell func(*scene, string)) error {
	tell(s, "starting")
	if err := s.scope.Try(s.open); err != nil {
		return err
	}
	s.deadline = share
	err := s.scope.Try(func() { s.act(share, tell) })
	s.close()
	return err
}

// open starts everything, clients included.
func (s *scene) open() {
	rules := plan.DrawRules(s.random("rules"))
	s.keys = keysOf(rules)
	s.store = startStore(s.scope, s.topology)
	holdRules := plan.DrawHoldRules(s.random("hold rules"), time.Now())
	placeRules := plan.PlaceRules()
	both := slices.Concat(rules, holdRules, placeRules)
	s.checker = check.New(both, s.options.Timeout, s.store.slotOf)
	s.line = s.checker.Timeline
	url := fmt.Sprintf("%s?timeout=%v", s.store.url(), s.options.Timeout)
	if old := s.options.Beside; old != "" { // which may know no leases and no levels, and not say of what an instance decides by itself
		for i := range both {
			both[i].OnFailure = strings.Replace(both[i].OnFailure, "local", "open", 1)
		}
		s.fleet = startFleet(s.scope, old, url, both.YAML(), s.now, s.line)
	} else {
		s.fleet = startFleet(s.scope, s.options.Weir, url, plan.WithLevels(both.YAML()), s.now, s.line, "--lease", plan.Lease.String())
	}
	s.watch = &watch{store: s.store, timeline: s.line, now: s.now, patience: s.options.Timeout}
	s.load = newLoad(rules, s.fleet, s.checker, s.now)
	s.holders = &holders{load: s.load, rules: holdRules, places: placeRules, calls: make(chan struct{}, clients)}
	s.movers = &movers{load: s.load}

	ctx, stop := context.WithCancel(s.ctx)
	s.stop = stop
	s.running.Go(func() { s.watch.run(ctx) })
	s.running.Go(func() { s.watchEcho(ctx) })
	s.running.Go(func() { s.watchEcho(ctx) })
	s.running.Go(func() { s.watchCores(ctx) })
	s.running.Go(func() { s.judge(ctx) })
	s.load.start(ctx, s.options.Seed, s.options.Rate)
	s.holders.start(ctx, s.options.Seed, s.options.Holds)
	if s.options.Beside == "" {
		s.movers.start(ctx, s.random("moves"))
	}
}

// close ends the clients and the watchers, and checks the remaining answers. The scope
// ends the rest.
func (s *scene) close() {
	s.stop()
	s.load.stop()
	s.running.Wait()
	s.checker.Judge(check.Open)
}

// act makes faults until the time is over.
func (s *scene) act(share time.Duration, tell func(*scene, string)) {
	tell(s, "warming up")
	s.sleep(warmUp(share))
	if s.options.Beside != "" {
		s.roll(share, tell)
		return
	}
	for !s.leases() && s.now() < share/2 && s.ctx.Err() == nil {
		tell(s, "waiting for leases")
		s.sleep(time.Second)
	}
	s.measure()
	schedule := plan.NewSchedule(s.random("faults"), s.topology)
	for last := s.now(); s.ctx.Err() == nil; {
		f := schedule.Next()
		if s.now()+f.After+f.For+check.Hindsight > s.deadline {
			break
		}
		tell(s, "well")
		s.sleep(f.After)
		tell(s, string(f.Kind))
		s.make(f)
		s.faults[f.Kind]++
		if s.now()-last > quietEvery {
			s.sleep(recovered)
			tell(s, "quiet")
			s.measure()
			last = s.now()
		}
	}
	tell(s, "ending")
	s.sleep(recovered)
	s.measure()
}

// roll replaces every instance, one after the other, by the newer program and then by the older one again. In between, there is
// time for the instances to agree on newer formats, if the share is long enough.
func (s *scene) roll(share time.Duration, tell func(*scene, string)) {
	step := share / 15
	for _, to := range []struct {
		kind    plan.Kind
		program string
		during  time.Duration
	}{{plan.Rollout, s.options.Weir, share/2 - step}, {plan.Rollback, s.options.Beside, 2 * readsWithin}} {
		for _, i := range s.fleet {
			tell(s, string(to.kind))
			note := s.line.Begin(string(to.kind), s.now())
			i.end(false)
			i.path = to.program
			testkit.OK(s.scope, i.start())
			s.line.End(note, s.now())
			s.faults[to.kind]++
			s.sleep(step)
		}
		s.sleep(to.during)
	}
	tell(s, "ending")
}

// leases reports whether every instance allows requests by leased units. They begin when all have agreed on the format of
// leases, which takes more than a minute.
func (s *scene) leases() bool {
	for _, i := range s.fleet {
		if testkit.Must(i.sample())(s.scope).Local == 0 {
			return false
		}
	}
	return true
}

// recovered is how long it takes at most until all is as before a fault.
const recovered = 3 * time.Second

// measure takes a sample of every instance while there are no requests.
func (s *scene) measure() {
	s.load.quiet(func() {
		s.sleep(rest)
		for _, i := range s.fleet {
			s.samples = append(s.samples, testkit.Must(i.sample())(s.scope))
		}
	})
}

// judge checks answers as soon as enough is known.
func (s *scene) judge(ctx context.Context) {
	for tick := time.Tick(500 * time.Millisecond); ctx.Err() == nil; <-tick {
		s.checker.Judge(s.now() - check.Hindsight)
	}
}

// random draws something of the run by its name, so that one draw does not change another.
func (s *scene) random(what string) *rand.Rand {
	n := uint64(0)
	for _, b := range []byte(what + " " + string(s.topology)) {
		n = n*131 + uint64(b)
	}
	return rand.New(rand.NewPCG(s.options.Seed, n))
}
