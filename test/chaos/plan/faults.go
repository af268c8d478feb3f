package plan

import (
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Kill     Kind = "kill"       // a server crashes, stays away, and comes back empty
	Restart  Kind = "restart"    // it crashes and comes back empty at once
	Pause    Kind = "pause"      // it stands still
	Slow     Kind = "latency"    // replies are late
	Cut      Kind = "cut"        // the line is cut, and refuses new connections
	Reset    Kind = "reset"      // connections are reset in mid-reply
	Flush    Kind = "flush"      // SCRIPT FLUSH, FUNCTION FLUSH
	Full     Kind = "oom"        // no memory is left
	Hangup   Kind = "hangup"     // CLIENT KILL, again and again
	Failover Kind = "failover"   // an operator makes a replica the master
	Reshard  Kind = "reshard"    // slots move to another master
	Crash    Kind = "weir kill"  // a weir is killed and started again
	Stop     Kind = "weir stop"  // a weir is told to stop, and started again
	Suspend  Kind = "weir pause" // a weir stands still, for longer than what it has is on lease
	Rollout  Kind = "rollout"    // a weir is replaced by that of the run, which is newer; no fault of a topology
	Rollback Kind = "rollback"   // and by the older one again
)

// Topology is a way to run Redis.
type Topology string

// The topologies, in the order in which a run visits them.
const (
	Single   Topology = "redis"
	Sentinel Topology = "sentinel"
	Cluster  Topology = "cluster"

	// Hostile has no Redis and no faults, but hostile clients.
	Hostile Topology = "hostile"
)

// Topologies are all of them.
func Topologies() []Topology { return []Topology{Single, Sentinel, Cluster, Hostile} }

// Kinds are the faults that a topology can have.
func (t Topology) Kinds() []Kind {
	kinds := []Kind{Kill, Restart, Pause, Pause, Slow, Slow, Cut, Cut, Reset, Flush, Full, Hangup, Crash, Stop, Suspend}
	switch t {
	case Sentinel:
		kinds = append(kinds, Failover)
	case Cluster:
		kinds = append(kinds, Failover, Reshard, Reshard)
	}
	return kinds
}

// Fault is something that goes wrong.
type Fault struct {
	Kind  Kind
	After time.Duration // since the last one was over
	For   time.Duration
	Pick  int           // which server, instance or slot; any number
	Delay time.Duration // of replies, for Slow
	Bytes int           // of replies before the reset, for Reset
}

// Schedule draws one fault after the other. Each kind comes once before any comes again.
type Schedule struct {
	r        *rand.Rand
	topology Topology
	deck     []Kind
}

// NewSchedule begins a schedule.
func NewSchedule(r *rand.Rand, t Topology) *Schedule { return &Schedule{r: r, topology: t} }

// Next draws the next fault. Between faults there is time enough to see that service is back.
func (s *Schedule) Next() Fault {
	if len(s.deck) == 0 {
		s.deck = s.topology.Kinds()
		s.r.Shuffle(len(s.deck), func(i, k int) { s.deck[i], s.deck[k] = s.deck[k], s.deck[i] })
	}
	f := Fault{Kind: s.deck[0], After: s.between(2500, 4000), Pick: s.r.IntN(1 << 20)}
	s.deck = s.deck[1:]
	short := s.r.IntN(2) == 0
	switch f.Kind {
	case Pause, Cut:
		if f.For = s.between(1000, 3000); short {
			f.For = s.between(60, 600)
		}
	case Slow:
		f.For = s.between(500, 2500)
		if f.Delay = s.between(60, 250); short {
			f.Delay = s.between(3, 20)
		}
	case Reset:
		f.For, f.Bytes = s.between(200, 1500), s.r.IntN(60)
	case Suspend:
		f.For = Lease + s.between(200, 1500)
	default:
		f.For = s.between(200, 2000)
	}
	return f
}

// between draws from a range of milliseconds.
func (s *Schedule) between(least, most int64) time.Duration {
	return time.Duration(least+s.r.Int64N(most-least)) * time.Millisecond
}
