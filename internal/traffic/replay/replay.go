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
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
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
	r.engine.InstallClients(o.Clients)
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
	r.tally.countVerdict(r.now, e, &r.verdict)
	r.merger.done(h)
	return nil
}

// Log is one log to replay. It is read once.
type Log struct {
	name string
	from io.Reader
	file io.Closer // nil if there is nothing to close
	size int64     // on the disk; 0 if it is not known
	read atomic.Int64
}

// NewLog makes a log of what a reader has. The name is for messages.
func NewLog(name string, r io.Reader) *Log {
	l := &Log{name: name}
	l.from = &counting{r, &l.read}
	return l
}

// Open opens a log. One whose name ends in .gz is decompressed on the way.
func Open(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := NewLog(path, f)
	l.file = f
	info, err := f.Stat()
	switch {
	case err == nil && info.IsDir():
		err = fmt.Errorf("%s is a directory; give the files in it", path)
	case err == nil && info.Mode().IsRegular():
		l.size = info.Size()
	}
	if err == nil && strings.HasSuffix(path, ".gz") {
		l.from, err = gzip.NewReader(bufio.NewReaderSize(l.from, 1<<16))
		if err != nil {
			err = fmt.Errorf("%s: cannot be decompressed as gzip: %w", path, err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// counting counts what was read.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Options of a replay.
type Options struct {
	// Table is the rules. It is needed.
	Table *rule.Table

	// Clients is the directory that says whose the API keys in the logs are. Default none.
	Clients engine.Clients

	// Format is how the logs are written. Default what each line looks like.
	Format Format

	// Fields says where in a line things are. Default where they usually are.
	Fields Fields

	// Host is the host of requests whose line has none. Default unknown.
	Host string

	// Disorder is how far a line may be out of order to be put back into it. Default
	// 10 s; less than 0 is none.
	Disorder time.Duration

	// MaxKeys is the most clients that are remembered at once. Default
	// memory.DefaultMaxKeys.
	MaxKeys int

	// Flags is whether the reader of the report can set the flags of weir replay. Only
	// then does the report name them.
	Flags bool

	// MaxArrivals is the most arrivals of clients, at all limits together, that are
	// remembered for suggestions. Each takes 16 bytes, up to twice that while a client's
	// list grows, and the client's name besides.
	// Default 8,388,608.
	MaxArrivals int

	// Top is how many of the clients that were denied most are listed. Default 10.
	Top int

	// Shares are the shares of denied requests for which a limit is suggested.
	// Default 1 % and 0.1 %.
	Shares []float64

	// Progress is called from time to time with the progress of the replay. Default none.
	Progress func(Progress)
}

// plainly is a text without the flags at its end, if the reader has none.
func (o *Options) plainly(text string) string {
	if !o.Flags {
		text, _, _ = strings.Cut(text, flagsToSet)
	}
	return text
}

// flagsToSet begins the end of a text that names flags.
const flagsToSet = "; set --"

// Progress is how far a replay has come.
type Progress struct {
	Requests int64
	Denied   int64
	Read     int64 // bytes of the files, as they are on the disk
	Size     int64 // of all files; 0 if it is not known
}

// Bounds of a replay.
const (
	MaxLogs = 128 // that are merged

	maxDisorder = 24 * time.Hour
	maxTop      = 1000
)

func (o *Options) validate(logs int) error {
	switch {
	case o.Table == nil:
		return errors.New("replay: Options.Table is required; make one with rule.Compile")
	case logs == 0:
		return errors.New("replay: a log is required")
	case logs > MaxLogs:
		return fmt.Errorf("replay: %d logs are too many to merge; give at most %d", logs, MaxLogs)
	case o.Disorder > maxDisorder:
		return fmt.Errorf("replay: a disorder of %s is too long; use at most %s", o.Disorder, maxDisorder)
	case o.Top < 0 || o.Top > maxTop:
		return fmt.Errorf("replay: a list of %d clients is out of range; use 1 to %d", o.Top, maxTop)
	}
	for _, share := range o.Shares {
		if !(share >= 0 && share < 1) {
			return fmt.Errorf("replay: %v is not a share; write for example 0.01 for 1 %%", share)
		}
	}
	return nil
}

func (o *Options) setDefaults() {
	o.Disorder = cmp.Or(o.Disorder, 10*time.Second)
	o.MaxArrivals = cmp.Or(o.MaxArrivals, maxArrivals)
	o.MaxKeys = cmp.Or(o.MaxKeys, memory.DefaultMaxKeys)
	o.Top = cmp.Or(o.Top, 10)
	if o.Shares == nil {
		o.Shares = []float64{0.01, 0.001}
	}
}
