package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/rule"
)

// Options of a registry.
type Options struct {
	// Store keeps the clients. Default the memory of this process alone.
	Store Store

	// Install brings a directory into force. Calls are one after the other. Default nothing.
	Install func(*rule.Directory)

	// Usable is told when the newest directory begins or ceases to be one that can be used: the store has lost clients, or has an entry that this
	// version cannot use. A store that is unavailable is no change. Default nothing.
	Usable func(bool)

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
	turn    order.Lock // of who looks or writes
}

// state is what is known.
type state struct {
	directory *rule.Directory
	position  Position
	unusable  map[string]Record // records that this version cannot use, by name; it is not changed
	Status
}

// set makes a state the one that is known.
func (r *Registry) set(next *state) {
	was := r.state.Swap(next)
	if now := next.usable(); now != was.usable() {
		r.options.Usable(now)
	}
}

func (s *Status) usable() bool { return s.Unusable == nil && !errors.Is(s.Err, ErrLost) }

// names is how many clients the store has, as far as they were read.
func (s *state) names() int {
	n := s.directory.Len()
	for name, record := range s.unusable {
		switch known := len(s.directory.Line(name)) > 0; {
		case known && len(record.Text) == 0:
			n--
		case !known && len(record.Text) > 0:
			n++
		}
	}
	return n
}

// New returns a registry that knows no clients. Look or Follow reads them.
func New(o Options) *Registry {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Store == nil {
		o.Store = NewJournal("", o.Logger)
	}
	if o.Install == nil {
		o.Install = func(*rule.Directory) {}
	}
	if o.Usable == nil {
		o.Usable = func(bool) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Registry{options: o}
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
// It looks at all clients, and keeps no more than two pages of them.
func (r *Registry) List(q Query) (page []Entry, next string) {
	limit := min(cmp.Or(max(q.Limit, 0), MaxPage), MaxPage)
	parent, kind := q.Parent, strings.TrimSuffix(q.Kind, ":")
	if canonical, err := rule.ClientName(parent); err == nil {
		parent = canonical
	}
	byName := func(a, b rule.Client) int { return cmp.Compare(a.Name, b.Name) }
	directory := r.state.Load().directory
	first := make([]rule.Client, 0, min(2*(limit+1), directory.Len()))
	last := "" // if it is not empty, no later name is on the page
	for c := range directory.All {
		if c.Name > q.After && (last == "" || c.Name < last) && (parent == "" || c.Parent == parent) && (q.Tier == "" || c.Tier == q.Tier) &&
			(kind == "" || strings.HasPrefix(c.Name, kind+":")) && strings.Contains(c.Name, q.Contains) {
			first = append(first, c)
			if len(first) == 2*(limit+1) {
				slices.SortFunc(first, byName)
				first, last = first[:limit+1], first[limit].Name
			}
		}
	}
	slices.SortFunc(first, byName)
	for i, c := range first {
		if i == limit {
			return page, page[limit-1].Name
		}
		page = append(page, entryOf(c))
	}
	return page, ""
}

// EndPage returns a page of List as an API shows it, and what Query.After is then for the next one. It ends before it has too many bytes.
func EndPage[A any](page []Entry, next string, show func(*Entry) (a A, size int)) ([]A, string) {
	shown, bytes := make([]A, 0, len(page)), 0
	for i := range page {
		a, size := show(&page[i])
		if bytes += size; bytes > maxPageBytes && i > 0 {
			return shown, page[i-1].Name
		}
		shown = append(shown, a)
	}
	return shown, next
}

// Export yields all clients as they are now, in no order.
func (r *Registry) Export(yield func(Entry) bool) {
	for c := range r.state.Load().directory.All {
		if !yield(entryOf(c)) {
			return
		}
	}
}

// Follow brings every change into force until the context ends, whose error it returns.
func (r *Registry) Follow(ctx context.Context) error {
	return r.options.Store.Watch(ctx, func() { _ = r.Look(ctx) })
}

// Look reads what has changed, and brings it into force. If it cannot be read, what is known stays in force.
func (r *Registry) Look(ctx context.Context) error {
	unlock, err := r.turn.Take(ctx)
	if err != nil {
		return err
	}
	defer unlock()
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
	if next.directory != s.directory || next.Loaded && !s.Loaded {
		r.options.Install(next.directory)
	}
	r.set(&next)
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
		for _, record := range next.unusable { // which may be usable now
			settle.takeRecord(record)
		}
		for _, record := range records {
			settle.takeRecord(record)
		}
		next.position = now
		r.takeState(&next, settle)
	}
	for tries := 0; errors.Is(err, ErrMoved) && tries < 3; tries++ {
		settle := newSettler(rule.NewDirectory())
		loaded, clients := next, 0
		if loaded.position, clients, err = r.options.Store.Load(ctx, settle.takeRecord); err != nil {
			continue
		}
		r.takeState(&loaded, settle)
		if n := loaded.names(); clients > 0 && n != clients { // as after a failover within the scan
			err = fmt.Errorf("%d of %d clients were read: %w", n, clients, ErrMoved)
			continue
		}
		next, next.Loaded = loaded, true
		if n := next.directory.Len(); n > 0 {
			r.options.Logger.Info("loaded the clients", "clients", n)
		}
	}
	return next, err
}

// takeState brings what was read into a state.
func (r *Registry) takeState(next *state, settle *settler) {
	before := next.Unusable
	next.directory, next.Unusable = settle.settle()
	next.unusable = settle.unusable
	if next.Unusable != nil && before == nil {
		r.options.Logger.Error("an entry of a client cannot be used; it stays in the store", "error", next.Unusable)
	}
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
		if errors.Is(err, ErrLost) && !errors.Is(was.Err, ErrLost) {
			r.options.Logger.Error("the clients are lost in their store", "error", err)
		}
	}
}
