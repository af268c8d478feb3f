package run

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// felt is for how long the beginning of a fault excuses a degraded answer by itself. After
// that the watch knows better whether the store is well.
const felt = 500 * time.Millisecond

// make makes a fault, undoes it, and returns when everything is in order again.
func (s *scene) make(f plan.Fault) {
	masters := s.store.masters()
	master := masters[f.Pick%len(masters)]
	note := s.line.Begin(describe(f, master), s.now())
	defer func() { s.line.End(note, s.now()) }()
	switch f.Kind {
	case plan.Crash, plan.Stop:
		s.endInstance(f)
		return
	case plan.Suspend:
		s.suspendInstance(f)
		return
	case plan.Kill, plan.Restart:
		s.watch.begin(true)
		s.crash(f, master)
	case plan.Reshard:
		s.watch.begin(true)
		s.reshard(f, masters)
	case plan.Failover:
		s.failOver(master)
	default:
		s.watch.begin(false)
		s.harm(f, master)
	}
	s.store.settle()
	s.watch.end()
}

func describe(f plan.Fault, master *testredis.Server) string {
	what := fmt.Sprintf("%s for %v", f.Kind, f.For)
	switch f.Kind {
	case plan.Crash, plan.Stop, plan.Suspend:
		return what
	case plan.Slow:
		what += fmt.Sprintf(" by %v", f.Delay)
	case plan.Reset:
		what += fmt.Sprintf(" after %d bytes", f.Bytes)
	}
	return what + " at " + master.Addr
}

// endInstance ends a weir and starts it again. The first one is spared, so that there is
// one whose growth can be told.
func (s *scene) endInstance(f plan.Fault) {
	i := s.fleet[1+f.Pick%(len(s.fleet)-1)]
	i.end(f.Kind == plan.Crash)
	s.sleep(f.For)
	testkit.OK(s.scope, i.start())
}

// suspendInstance lets a weir stand still. What it is asked meanwhile may have no answer.
func (s *scene) suspendInstance(f plan.Fault) {
	i := s.fleet[1+f.Pick%(len(s.fleet)-1)]
	s.line.Down(i.number, check.Span{From: s.now(), To: check.Open})
	i.process.Signal(syscall.SIGSTOP)
	s.sleep(f.For)
	i.process.Signal(syscall.SIGCONT)
	s.sleep(felt)
	s.line.Ready(i.number, s.now())
}

// crash kills a server, which comes back empty: at once, or after a replica has taken over.
func (s *scene) crash(f plan.Fault, master *testredis.Server) {
	before, _ := s.store.owners()
	slots := before[master]
	loss := s.line.Lose(check.Loss{Span: check.Span{From: s.now(), To: check.Open}, Lives: 1,
		Has: func(slot int) bool { return has(slots, slot) }})
	s.sick(felt)
	if f.Kind == plan.Kill {
		master.Kill()
		s.store.succeed(master)
		s.sleep(f.For)
		master.Restart()
		return
	}
	// If that takes too long, a replica takes over beside the server that came back.
	s.line.Recount(loss, 2)
	master.Restart()
	s.store.settle()
	if after, err := s.store.owners(); err == nil && after[master] != nil {
		s.line.Recount(loss, 1)
	}
}

// failOver lets a replica take over. In a cluster it asks the master to wait, and catches up.
// A Sentinel promotes it whatever it lacks; the watch sees when.
func (s *scene) failOver(master *testredis.Server) {
	s.watch.begin(s.topology == plan.Cluster)
	s.sick(felt)
	s.store.promote(master)
}

// reshard moves some slots that are in use to another master.
func (s *scene) reshard(f plan.Fault, masters []*testredis.Server) {
	c := s.store.(*cluster)
	for n := range 6 {
		keys := s.keys
		if n >= 3 {
			keys = append(s.holders.keys(), keys...)
		}
		key := keys[(f.Pick+n)%len(keys)]
		slot := c.slotOf(key)
		from := c.MasterOf(slot)
		to := masters[f.Pick%len(masters)]
		if to == from {
			to = masters[(f.Pick+1)%len(masters)]
		}
		c.MoveSlot(slot, to)
	}
}

// harm does something to a master from which it recovers with all that it knew, unless a
// replica takes over meanwhile.
func (s *scene) harm(f plan.Fault, master *testredis.Server) {
	switch f.Kind {
	case plan.Pause:
		s.during(f, felt, master.Pause, master.Resume)
	case plan.Cut:
		s.during(f, felt, master.Line.Cut, master.Line.Heal)
	case plan.Slow:
		s.during(f, f.For, func() { master.Line.Latency(f.Delay) }, master.Line.Heal)
	case plan.Reset:
		s.during(f, f.For, func() { master.Line.ResetMidReply(f.Bytes) }, master.Line.Heal)
	case plan.Full:
		s.during(f, f.For, master.FillMemory, master.FreeMemory)
	case plan.Hangup:
		s.sick(f.For)
		s.again(f.For, func() { master.Do("CLIENT", "KILL", "TYPE", "normal") })
	case plan.Flush: // no client should notice
		s.again(f.For, func() {
			for _, m := range s.store.masters() {
				m.FlushScripts()
			}
		})
	}
}

// during does harm for as long as the fault lasts, of which some excuses degraded answers.
func (s *scene) during(f plan.Fault, excused time.Duration, do, undo func()) {
	s.sick(min(f.For, excused))
	do()
	s.sleep(f.For)
	undo()
}

// again does something every now and then.
func (s *scene) again(during time.Duration, do func()) {
	for end := s.now() + during; s.now() < end && s.ctx.Err() == nil; s.sleep(100 * time.Millisecond) {
		do()
	}
}

// sick notes that the store is not well for some time from now on.
func (s *scene) sick(during time.Duration) {
	s.line.Sick(check.Span{From: s.now(), To: s.now() + during})
}

// sleep waits, but not longer than the run.
func (s *scene) sleep(d time.Duration) { _ = clock.Sleep(s.ctx, d) }

// keysOf are the keys that requests have under rules.
func keysOf(rules plan.Rules) (keys []string) {
	for n := range plan.Clients {
		q := plan.Request{User: fmt.Sprintf("u%d", n), IP: fmt.Sprintf("10.0.0.%d", 1+n)}
		for i := range rules {
			if key := rules[i].KeyOf(&q); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
