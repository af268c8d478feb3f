package clients

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/rule"
)

// Options of a registry.
type Options struct {
	// Install brings a directory into force. Calls are one after the other. Default nothing.
	Install func(*rule.Directory)

	// Now is the time of changes. Default time.Now.
	Now func() time.Time
}

// Registry is a directory of clients that can be changed. It is safe for concurrent use.
type Registry struct {
	options Options

	mu        sync.Mutex
	directory *rule.Directory
	entries   map[string]Entry
	version   int64
	readOnly  bool
}

// New returns a registry without clients.
func New(o Options) *Registry {
	if o.Install == nil {
		o.Install = func(*rule.Directory) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d, _, _ := rule.ReadDirectory("", strings.NewReader(""))
	return &Registry{options: o, directory: d, entries: map[string]Entry{}}
}

// Show makes the registry one of a directory that comes from elsewhere, which cannot be changed here.
func (r *Registry) Show(d *rule.Directory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.directory, r.readOnly = d, true
}

// Status tells how current the directory is.
func (r *Registry) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{Clients: r.directory.Len(), ReadOnly: r.readOnly, Loaded: true}
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.directory.Line(name) {
		line = append(line, r.entries[c.Name])
	}
	return line
}

// Count returns the number of clients.
func (r *Registry) Count() int { return r.Status().Clients }

// Tiers returns how many clients have each tier of their own.
func (r *Registry) Tiers() map[string]int {
	tiers := map[string]int{}
	for e := range r.Export {
		if e.Tier != "" {
			tiers[e.Tier]++
		}
	}
	return tiers
}

// List returns a page of clients in the order of their names, and what Query.After is for the next page; "" if there is none.
func (r *Registry) List(q Query) (page []Entry, next string) {
	limit := min(cmp.Or(max(q.Limit, 0), MaxPage), MaxPage)
	for e := range r.Export {
		if q.Parent != "" && e.Parent != q.Parent || q.Tier != "" && e.Tier != q.Tier || e.Name <= q.After ||
			q.Kind != "" && !strings.HasPrefix(e.Name, q.Kind+":") || !strings.Contains(e.Name, q.Contains) {
			continue
		}
		if page = append(page, e); len(page) > limit {
			return page[:limit], page[limit-1].Name
		}
	}
	return page, ""
}

// Export yields all clients, each after those that it belongs to.
func (r *Registry) Export(yield func(Entry) bool) {
	r.mu.Lock()
	entries := maps.Clone(r.entries)
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !yield(entries[name]) {
			return
		}
	}
}

// Apply makes at most MaxChanges changes. Each alone succeeds or fails. A client may come before its parent. The error is that
// of the whole: then it is not known which changes were made.
func (r *Registry) Apply(_ context.Context, by string, changes []Change) ([]Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readOnly {
		return nil, &Error{Reason: ReadOnly, Message: "the clients come from a file; change the file of --clients"}
	}
	outcomes := make([]Outcome, len(changes))
	for progress := true; progress; {
		progress = false
		for i, c := range changes {
			if outcomes[i].Entry.Version != "" {
				continue
			}
			outcomes[i] = r.apply(by, c)
			progress = progress || outcomes[i].Err == nil
		}
	}
	r.options.Install(r.directory)
	return outcomes, nil
}

func (r *Registry) apply(by string, c Change) Outcome {
	was, known := r.entries[c.Client.Name]
	switch {
	case (c.Delete || c.If == Exists) && !known:
		return Outcome{Err: &Error{Reason: NotFound, Message: "there is no such client"}}
	case c.If == Missing && known, c.If != "" && c.If != Exists && c.If != Missing && c.If != was.Version:
		return Outcome{Err: &Error{Reason: Mismatch, Message: "the client has changed; read it, and make the change again"}}
	}
	next := maps.Clone(r.entries)
	e := Entry{c.Client, strconv.FormatInt(r.version+1, 10), by, r.options.Now()}
	next[e.Name] = e
	if c.Delete {
		delete(next, e.Name)
		e = was
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(next)) {
		client := next[name].Client
		text.Write(append(rule.ClientToJSON(&client), '\n'))
	}
	d, problems, err := rule.ReadDirectory("clients.ndjson", &text)
	if err != nil || len(problems) > 0 {
		return Outcome{Err: &Error{Reason: Invalid, Message: problems[0].Message}}
	}
	r.directory, r.entries = d, next
	r.version++
	return Outcome{Entry: e, Created: !known && !c.Delete}
}
