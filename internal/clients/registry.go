package clients

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/rule"
)

// Options of a registry.
type Options struct {
	// Store keeps the clients. Default the memory of this process alone.
	Store Store

	// Install brings a directory into force. Calls are one after the other. Default nothing.
	Install func(*rule.Directory)

	// Now is the time of changes. Default time.Now.
	Now func() time.Time

	// Logger is told of trouble with the store. Default slog.Default().
	Logger *slog.Logger
}

// Registry is a directory of clients that can be changed. Every instance has the whole of it: no request waits for a store, and
// what is known stays in force while the store is unavailable. It is safe for concurrent use.
type Registry struct {
	options Options
	state   atomic.Pointer[state]
	turn    chan struct{} // of who looks or writes
}

// state is what is known.
type state struct {
	directory *rule.Directory
	position  Position
	Status
}

// New returns a registry that knows no clients. Look or Follow reads them.
func New(o Options) *Registry {
	if o.Store == nil {
		o.Store = new(inMemory)
	}
	if o.Install == nil {
		o.Install = func(*rule.Directory) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	r := &Registry{options: o, turn: make(chan struct{}, 1)}
	r.state.Store(&state{directory: rule.NewDirectory()})
	return r
}

// Show makes the registry one of a directory that comes from elsewhere, which cannot be changed here.
func (r *Registry) Show(d *rule.Directory) {
	r.state.Store(&state{directory: d, Status: Status{ReadOnly: true, Loaded: true}})
}

// Status tells how current the directory is.
func (r *Registry) Status() Status {
	s := r.state.Load()
	status := s.Status
	status.Clients = s.directory.Len()
	return status
}

// Get returns a client, whose name is as people write it.
func (r *Registry) Get(name string) (Entry, bool) {
	line := r.Line(name)
	if len(line) == 0 {
		return Entry{}, false
	}
	return line[0], true
}

// Line returns a client and those that it belongs to, from below.
func (r *Registry) Line(name string) (line []Entry) {
	for _, c := range r.state.Load().directory.Line(name) {
		line = append(line, entryOf(c))
	}
	return line
}

// Count returns the number of clients.
func (r *Registry) Count() int { return r.state.Load().directory.Len() }

// Tiers returns how many clients have each tier of their own.
func (r *Registry) Tiers() map[string]int { return r.state.Load().directory.Tiers() }

// List returns a page of clients in the order of their names, and what Query.After is for the next page; "" if there is none.
// It looks at all clients, and keeps no more than a page.
func (r *Registry) List(q Query) (page []Entry, next string) {
	limit := min(cmp.Or(max(q.Limit, 0), MaxPage), MaxPage)
	parent := q.Parent
	if canonical, err := rule.ClientName(parent); err == nil {
		parent = canonical
	}
	var first firstNames
	for c := range r.state.Load().directory.All {
		if c.Name > q.After && (parent == "" || c.Parent == parent) && (q.Tier == "" || c.Tier == q.Tier) &&
			(q.Kind == "" || strings.HasPrefix(c.Name, q.Kind+":")) && strings.Contains(c.Name, q.Contains) {
			first.add(c, limit+1)
		}
	}
	slices.SortFunc(first, func(a, b rule.Client) int { return cmp.Compare(a.Name, b.Name) })
	for i, c := range first {
		if i == limit {
			return page, page[limit-1].Name
		}
		page = append(page, entryOf(c))
	}
	return page, ""
}

// firstNames are the clients with the least names, as a heap with the greatest of them first.
type firstNames []rule.Client

func (f *firstNames) add(c rule.Client, most int) {
	switch {
	case len(*f) < most:
		*f = append(*f, c)
		if len(*f) == most {
			for i := most / 2; i >= 0; i-- {
				f.sink(i)
			}
		}
	case c.Name < (*f)[0].Name:
		(*f)[0] = c
		f.sink(0)
	}
}

func (f *firstNames) sink(i int) {
	all := *f
	for {
		child := 2*i + 1
		if child+1 < len(all) && all[child+1].Name > all[child].Name {
			child++
		}
		if child >= len(all) || all[child].Name <= all[i].Name {
			return
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
}

// Export yields all clients as they are now, in no order.
func (r *Registry) Export(yield func(Entry) bool) {
	for c := range r.state.Load().directory.All {
		if !yield(entryOf(c)) {
			return
		}
	}
}

// begin waits until nobody else looks or writes.
func (r *Registry) begin(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Registry) end() { <-r.turn }

// Follow brings every change into force until the context ends, whose error it returns.
func (r *Registry) Follow(ctx context.Context) error {
	return r.options.Store.Watch(ctx, func() { _ = r.Look(ctx) })
}

// Look reads what has changed, and brings it into force. If it cannot be read, what is known stays in force.
func (r *Registry) Look(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer r.end()
	return r.lookLocked(ctx)
}

func (r *Registry) lookLocked(ctx context.Context) error {
	s := r.state.Load()
	if s.ReadOnly {
		return nil
	}
	next, err := r.catchUp(ctx, s)
	if ctx.Err() != nil {
		return err
	}
	r.report(s, &next, err)
	if next.directory != s.directory || !s.Loaded {
		r.options.Install(next.directory)
	}
	r.state.Store(&next)
	return err
}

// catchUp returns what the store has. With an error, it is as far as it could be read.
func (r *Registry) catchUp(ctx context.Context, s *state) (next state, err error) {
	next = *s
	err = ErrMoved
	for next.Loaded {
		var records []Record
		var now Position
		records, now, err = r.options.Store.Changes(ctx, next.position)
		if err != nil || now == next.position {
			break
		}
		settle := newSettler(next.directory)
		for _, record := range records {
			settle.take(record)
		}
		next.position = now
		if next.directory, err = settle.settle(); err != nil {
			r.options.Logger.Error("an entry of a client cannot be used", "error", err)
		}
	}
	for tries := 0; errors.Is(err, ErrMoved) && tries < 3; tries++ {
		settle := newSettler(rule.NewDirectory())
		var now Position
		if now, err = r.options.Store.Load(ctx, settle.take); err != nil {
			continue
		}
		var bad error
		next.directory, bad = settle.settle()
		next.position, next.Loaded = now, true
		r.options.Logger.Info("loaded the clients", "clients", next.directory.Len())
		if bad != nil {
			r.options.Logger.Error("an entry of a client cannot be used", "error", bad)
		}
	}
	return next, err
}

// report notes and logs whether the directory is current.
func (r *Registry) report(was, now *state, err error) {
	switch {
	case err == nil && was.Err != nil:
		r.options.Logger.Info("the clients are current again", "since", was.Since)
		now.Since, now.Err = time.Time{}, nil
	case err == nil:
	case was.Err == nil:
		now.Since, now.Err = r.options.Now(), err
		r.options.Logger.Error("could not read the clients; what is known stays in force", "known", now.Loaded, "error", err)
	default:
		now.Err = err
	}
}

// maxBytes bounds what one Apply sends to a store.
const maxBytes = 4 << 20

// Apply makes at most MaxChanges changes. Each alone succeeds or fails. A client may come before its parent. The error is that
// of the whole: unless it says otherwise, it is not known then whether the changes were made.
func (r *Registry) Apply(ctx context.Context, by string, changes []Change) ([]Outcome, error) {
	if len(changes) > MaxChanges {
		return nil, &Error{Reason: Invalid, Message: fmt.Sprintf("there are %d changes; the maximum is %d; send fewer at a time", len(changes), MaxChanges)}
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer r.end()
	for range 10 {
		s := r.state.Load()
		if s.ReadOnly {
			return nil, &Error{Reason: ReadOnly, Message: "the clients come from the file of --clients; change the file"}
		}
		if !s.Loaded || s.Err != nil {
			if err := r.lookLocked(ctx); err != nil {
				return nil, unavailable("the clients cannot be read, so nothing was changed; try again later", err)
			}
			s = r.state.Load()
		}
		b := &batch{edit: s.directory.Edit(), by: by, now: r.options.Now().Truncate(time.Millisecond), outcomes: make([]Outcome, len(changes))}
		b.stage(changes)
		if len(b.records) == 0 {
			return b.outcomes, nil
		}
		next := state{directory: b.edit.Directory(), Status: Status{Loaded: true}}
		var err error
		next.position, err = r.options.Store.Write(ctx, s.position, b.records, next.records)
		if err == nil {
			r.options.Install(next.directory)
			r.state.Store(&next)
			return b.outcomes, nil
		}
		if !errors.Is(err, ErrMoved) {
			return nil, unavailable("the changes may or may not have been made; make them again later", err)
		}
		if err := r.lookLocked(ctx); err != nil {
			return nil, unavailable("the clients cannot be read, so nothing was changed; try again later", err)
		}
	}
	return nil, &Error{Reason: Busy, Message: "other instances keep changing the clients, so nothing was changed; try again"}
}

func unavailable(message string, err error) error {
	return &Error{Reason: Unavailable, Message: message, Err: err}
}

func (s *state) records(yield func(Record) bool) {
	for c := range s.directory.All {
		if !yield(recordOf(c)) {
			return
		}
	}
}

// batch is changes that are being made.
type batch struct {
	edit     *rule.DirectoryEdit
	by       string
	now      time.Time
	outcomes []Outcome
	records  []Record
	bytes    int
}

// stage makes changes in their order, except that one that must wait for others is made after them.
func (b *batch) stage(changes []Change) {
	waiting := make([]int, len(changes))
	for i := range waiting {
		waiting[i] = i
	}
	for before := -1; len(waiting) != before; {
		before = len(waiting)
		later := map[string]bool{} // clients with a change that waits
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			c, o := &changes[i], &b.outcomes[i]
			if later[c.Client.Name] {
				return false
			}
			*o = b.change(c)
			later[c.Client.Name] = mayWait(o.Err)
			return !later[c.Client.Name]
		})
	}
	for _, i := range waiting { // in vain; but those behind one for the same client have not been tried
		b.outcomes[i] = b.change(&changes[i])
	}
}

// mayWait reports whether another change may help.
func mayWait(err error) bool {
	wrong, ok := errors.AsType[*Error](err)
	return ok && (wrong.Reason == NoParent || wrong.Reason == HasMembers || wrong.Reason == Cycle || wrong.Reason == TooDeep)
}

// change makes one change.
func (b *batch) change(c *Change) Outcome {
	was, known := b.edit.Find(c.Client.Name)
	before := entryOf(was)
	switch {
	case (c.Delete || c.If == Exists) && !known:
		return Outcome{Err: &Error{Reason: NotFound, Message: "there is no such client; add it first, or correct the name"}}
	case c.If == Missing && known:
		return Outcome{Entry: before, Err: &Error{Reason: Mismatch, Message: "there is a client with this name already; read it, and change it"}}
	case c.If != "" && c.If != Exists && c.If != Missing && (!known || c.If != before.Version):
		return Outcome{Entry: before, Err: &Error{Reason: Mismatch, Message: "the client has changed meanwhile; read it, and make the change again"}}
	case c.Delete:
		if err := b.edit.Remove(c.Client.Name); err != nil {
			return Outcome{Entry: before, Err: errorOf(err)}
		}
		b.records = append(b.records, Record{Name: c.Client.Name})
		return Outcome{Entry: before}
	case known && bytes.Equal(rule.ClientToJSON(&was), rule.ClientToJSON(&c.Client)):
		return Outcome{Entry: before, Unchanged: true}
	}
	next := c.Client
	next.Stamp = rule.Stamp{Serial: rand.Uint64(), By: b.by, At: b.now}
	record := recordOf(next)
	if b.bytes+len(record.Text) > maxBytes {
		return Outcome{Entry: before, Err: &Error{Reason: Busy, Message: "the changes are too large together; send fewer at a time"}}
	}
	if err := b.edit.Put(next); err != nil {
		return Outcome{Entry: before, Err: errorOf(err)}
	}
	b.records, b.bytes = append(b.records, record), b.bytes+len(record.Text)
	return Outcome{Entry: entryOf(next), Created: !known}
}

// errorOf is an error of a directory.
func errorOf(err error) error {
	out := &Error{Reason: Invalid, Field: "client", Message: err.Error()}
	wrong, ok := errors.AsType[*rule.DirectoryError](err)
	if !ok {
		return out
	}
	switch wrong.Fault {
	case rule.NoClient:
	case rule.NoParent:
		out.Reason, out.Field = NoParent, "parent"
	case rule.LineCycle:
		out.Reason, out.Field = Cycle, "parent"
	case rule.LineTooLong:
		out.Reason, out.Field = TooDeep, "parent"
	case rule.HasMembers:
		out.Reason = HasMembers
	case rule.DirectoryFull:
		out.Reason = Full
	case rule.EditTooComplex:
		out.Reason, out.Field = Busy, "parent"
	}
	return out
}
