// Package replay plays access logs against rules, and tells what would have
// happened: who would have been denied, how often, by which rule, and which limits
// would have denied how much.
//
//	log, err := replay.Open("access.log")
//	report, err := replay.Run(ctx, replay.Options{Table: table}, log)
//	report.WriteText(os.Stdout, 80)
//
// The same engine as for live requests decides, with a store in memory, at the times in
// the logs. Several logs are merged by time. Memory is bounded, however long the logs
// are and whatever clients wrote into them.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// replay is one run.
type replay struct {
	o      Options
	logs   []*Log
	engine *engine.Engine
	store  *memory.Store
	now    int64 // the clock: the time of the latest request so far

	request rule.Request
	values  values
	verdict engine.Verdict

	merger merger
	order  sorter
	tally  *tally
	notes  []string
}

// Run replays logs, merged by time, and reports. What a log has that cannot be read
// is part of the report, not an error; an error is a context that has ended, or
// options that make no sense.
func Run(ctx context.Context, o Options, logs ...*Log) (*Report, error) {
	if err := o.validate(len(logs)); err != nil {
		return nil, err
	}
	o.setDefaults()
	r := &replay{o: o, logs: logs, tally: newTally(&o)}
	clock := func() weir.Micros { return weir.Micros(r.now) }
	r.store = memory.New(memory.Options{MaxKeys: o.MaxKeys, Clock: clock})
	var err error
	if r.engine, err = engine.New(engine.Options{Store: r.store, Clock: clock}); err != nil {
		return nil, err
	}
	r.engine.Install(o.Table, 1)
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	return r.report(), nil
}

// play starts to read the logs, and checks their requests.
func (r *replay) play(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var feeds []*feed
	for _, l := range r.logs {
		p, err := NewParser(r.o.Format, r.o.Fields)
		if err != nil {
			return err
		}
		feeds = append(feeds, &feed{log: l, parser: p, full: make(chan *batch, 2), free: make(chan *batch, 4)})
		r.values.extra = p.Extra()
	}
	for _, f := range feeds {
		go f.run(reading)
	}
	r.merger = merger{ctx: ctx, begun: r.count}
	r.order = sorter{bound: max(0, r.o.Disorder.Microseconds())}
	r.merger.start(feeds)
	for {
		h, ok := r.merger.next()
		if !ok {
			break
		}
		r.order.push(h)
		if err := r.judgeAll(ctx, false); err != nil {
			return err
		}
	}
	if err := r.judgeAll(ctx, true); err != nil {
		return err
	}
	return ctx.Err()
}

// judgeAll checks the requests before which no other is expected, or at the end all.
func (r *replay) judgeAll(ctx context.Context, end bool) error {
	for {
		crowded := r.order.len() > maxDelayed || r.merger.live > maxBatches
		h, ok := r.order.pop(end || crowded)
		if !ok {
			return nil
		}
		if err := r.judge(ctx, h); err != nil {
			return err
		}
	}
}

// count takes note of a batch: its lines, and those that were not understood.
func (r *replay) count(f *feed, b *batch) {
	t := r.tally
	t.Lines += b.lines
	t.Bad += b.badLines
	for _, bad := range b.bad[:min(len(b.bad), maxShown-len(t.BadLines))] {
		bad.Reason = r.o.plainly(bad.Reason)
		t.BadLines = append(t.BadLines, bad)
	}
	if b.err != nil && b.err != io.EOF {
		r.notes = append(r.notes, fmt.Sprintf("%s could not be read to its end: %v. The lines before that are in the result.", f.log.name, b.err))
	}
	if r.o.Progress != nil {
		r.o.Progress(r.progress())
	}
}

func (r *replay) progress() Progress {
	p := Progress{Requests: r.tally.Requests, Denied: r.tally.Denied}
	known := true
	for _, l := range r.logs {
		p.Read += l.read.Load()
		p.Size += l.size
		known = known && l.size > 0
	}
	if !known {
		p.Size = 0
	}
	return p
}

// judge checks one request.
func (r *replay) judge(ctx context.Context, h held) error {
	e := h.entry
	if e.At < r.now {
		r.tally.Late++
	}
	r.now = max(r.now, e.At)
	r.values.entry = e
	r.request = rule.Request{
		IP: e.IP, User: e.User, APIKey: e.APIKey, Tier: e.Tier, Method: e.Method,
		Host: cmp.Or(e.Host, r.o.Host), Path: e.Path, Attributes: r.values.attributes(), Values: &r.values,
	}
	if err := r.engine.Continue(ctx, &r.request, &r.verdict); err != nil {
		return fmt.Errorf("replay: a request at %s: %w", time.UnixMicro(e.At).UTC().Format(time.RFC3339), err)
	}
	r.tally.add(r.now, e, &r.verdict)
	r.merger.done(h)
	return nil
}
