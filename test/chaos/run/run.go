// Package run executes chaos runs: it starts Redis and three instances of weir, sends
// requests, and injects faults by a schedule, while a checker checks the answers.
package run

import (
	"context"
	"io"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/hostile"
	"github.com/weirhq/weir/test/chaos/plan"
)

// Options say how to run.
type Options struct {
	Seed       uint64
	Duration   time.Duration   // of all topologies together
	Topologies []plan.Topology // default all
	Rate       float64         // requests a second
	Holds      int             // open at the same time on one key
	Timeout    time.Duration   // of the store
	Weir       string          // the program
	Beside     string          // an older one, with which the instances begin and end; then there are no faults. Default none
	Out        string          // directory for the history of what went wrong
	Progress   io.Writer       // default none
}

// Report is what came of a run.
type Report struct {
	Scenes  []Scene
	Attacks []hostile.Outcome
}

// Scene is what came of one topology.
type Scene struct {
	Topology   plan.Topology
	Took       time.Duration
	Faults     map[plan.Kind]int
	Samples    []check.Sample
	Tally      check.Tally
	Violations []check.Violation
	More       int // violations besides
	Stalled    time.Duration
	Stall      time.Duration // the longest
	History    string        // where it was saved; "" if nothing was wrong
}

// Broken is how many violations there were.
func (r *Report) Broken() (n int) {
	for _, s := range r.Scenes {
		n += len(s.Violations) + s.More
	}
	for _, a := range r.Attacks {
		n += a.Failed
	}
	return n
}

// Run runs chaos. An error means that it could not be run to the end; the report has what
// came before.
func Run(ctx context.Context, o Options) (*Report, error) {
	if len(o.Topologies) == 0 {
		o.Topologies = plan.Topologies()
	}
	report, begun := &Report{}, time.Now()
	progress := &progress{Options: o, begun: begun}
	for i, t := range o.Topologies {
		if ctx.Err() != nil {
			break
		}
		share := (o.Duration - time.Since(begun)) / time.Duration(len(o.Topologies)-i)
		if err := report.run(ctx, o, t, share, progress); err != nil {
			return report, err
		}
	}
	return report, nil
}

// run runs chaos on a topology, or lets hostile clients attack a weir in each way they know.
func (r *Report) run(ctx context.Context, o Options, t plan.Topology, share time.Duration, p *progress) error {
	h, err := testkit.NewScope("chaos")
	if err != nil {
		return err
	}
	defer h.Close()
	s := newScene(ctx, o, h, t)
	if t == plan.Hostile {
		all := hostile.Attacks()
		return h.Try(func() {
			r.Attacks = hostile.Run(ctx, h, o.Weir, share/time.Duration(len(all)), all, func(doing string) { p.tell(s, doing) })
		})
	}
	err = s.play(share, p.tell)
	if s.checker == nil {
		return err
	}
	done := Scene{Topology: t, Took: s.now(), Faults: s.faults, Samples: s.samples}
	done.Tally, done.Violations, done.More = s.checker.Result()
	done.Violations = append(done.Violations, check.Grown(s.samples)...)
	done.Stalled, done.Stall = s.line.Stalls()
	if len(done.Violations) > 0 {
		var saved error
		if done.History, saved = save(s, &done); err == nil {
			err = saved
		}
	}
	r.Scenes = append(r.Scenes, done)
	return err
}
