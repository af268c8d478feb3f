package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirhq/weir/rule"
)

// maxBytes bounds what one Apply sends to a store.
const maxBytes = 4 << 20

// Apply makes at most MaxChanges changes, and as many that prune. Each alone succeeds or fails. A client may come before its parent. The error is that
// of the whole: unless it says otherwise, it is not known then whether the changes were made.
func (r *Registry) Apply(ctx context.Context, by string, changes []Change) ([]Outcome, error) {
	pruned := 0
	for i := range changes {
		if changes[i].Prune {
			pruned++
		}
	}
	if n := max(pruned, len(changes)-pruned); n > MaxChanges {
		return nil, &Error{Reason: Invalid, Message: fmt.Sprintf("there are %d changes; the maximum is %d; send fewer at a time", n, MaxChanges)}
	}
	unlock, err := r.turn.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	looked := false
	for range 10 {
		s := r.state.Load()
		if s.ReadOnly {
			return nil, errReadOnly
		}
		if !s.Loaded || s.Err != nil {
			if err := r.lookLocked(ctx); err != nil {
				return nil, unavailable("the clients cannot be read, so nothing was changed; try again later", err)
			}
			s = r.state.Load()
		}
		b := s.stage(by, r.options.Now().Truncate(time.Millisecond), changes)
		if len(b.records) < len(changes) && !looked { // some have an answer from what is known here, which may be old
			looked = true
			if err := r.lookLocked(ctx); err != nil {
				return nil, unavailable("the clients cannot be read, so nothing was changed; try again later", err)
			}
			if r.state.Load().position != s.position {
				continue
			}
		}
		if len(b.records) == 0 {
			return b.outcomes, nil
		}
		next := state{directory: b.edit.Directory(), unusable: maps.Clone(s.unusable), Status: Status{Loaded: true}}
		for _, record := range b.records {
			delete(next.unusable, record.Name) // it is replaced
		}
		if len(next.unusable) > 0 {
			next.Unusable = s.Unusable
		}
		var err error
		next.position, err = r.options.Store.Write(ctx, s.position, b.records, next.records)
		if err == nil {
			r.options.Install(next.directory)
			r.set(&next)
			return b.outcomes, nil
		}
		if !errors.Is(err, ErrMoved) {
			r.forgetLocked()
			return nil, unavailable("the changes may or may not have been made; make them again later", err)
		}
		if err := r.lookLocked(ctx); err != nil {
			return nil, unavailable("the clients cannot be read, so nothing was changed; try again later", err)
		}
	}
	return nil, &Error{Reason: Busy, Message: "other instances keep changing the clients, so nothing was changed; try again"}
}

// Try returns what Apply would, as far as is known here, and changes nothing.
func (r *Registry) Try(ctx context.Context, changes []Change) ([]Outcome, error) {
	unlock, err := r.turn.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := r.state.Load()
	if s.ReadOnly {
		return nil, errReadOnly
	}
	outcomes := s.stage("", time.Time{}, changes).outcomes
	r.forgetLocked()
	return outcomes, nil
}

var errReadOnly = &Error{Reason: ReadOnly, Message: "the clients come from the file of --clients; change the file"}

// forgetLocked removes the values of changes that were not made, if these are many.
func (r *Registry) forgetLocked() {
	clean := *r.state.Load()
	clean.directory = clean.directory.Edit().Directory()
	r.state.Store(&clean)
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
	for _, record := range s.unusable { // nothing is lost that another version can use
		if !yield(record) {
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

// stage makes changes: without those that prune, if another one fails even beside them.
func (s *state) stage(by string, now time.Time, changes []Change) *batch {
	for prune := true; ; prune = false {
		b := &batch{edit: s.directory.Edit(), by: by, now: now, outcomes: make([]Outcome, len(changes))}
		b.stage(changes, prune)
		if !prune || !b.keeps(changes) {
			return b
		}
	}
}

// keeps reports whether a change has failed because of which those that prune are not made.
func (b *batch) keeps(changes []Change) bool {
	failed := func(c *Change, err error) bool {
		return err != nil && !c.Prune && !(c.Delete && errors.Is(err, ErrNotFound))
	}
	some, prunes := false, false
	for i := range changes {
		some, prunes = some || failed(&changes[i], b.outcomes[i].Err), prunes || changes[i].Prune
	}
	return some && prunes
}

// stage makes changes in their order, except that one that must wait for others is made after them.
func (b *batch) stage(changes []Change, prune bool) {
	var waiting []int
	for i := range changes {
		if prune || !changes[i].Prune {
			waiting = append(waiting, i)
		} else {
			b.outcomes[i].Unchanged = true
		}
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
		return Outcome{Err: ErrNotFound}
	case c.If == Missing && known:
		return Outcome{Entry: before, Err: &Error{Reason: Mismatch, Message: "there is a client with this name already; read it, and change that one"}}
	case c.If != "" && c.If != Exists && c.If != Missing && (!known || c.If != before.Version):
		return Outcome{Entry: before, Err: ErrChanged}
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
	if len(record.Text) > maxSure {
		if _, err := record.client(); err != nil {
			return Outcome{Entry: before, Err: &Error{Reason: Invalid, Field: "client", Message: "the client is too long; write fewer limits, or shorter names of rules"}}
		}
	}
	if err := b.edit.Put(next); err != nil {
		return Outcome{Entry: before, Err: errorOf(err)}
	}
	b.records, b.bytes = append(b.records, record), b.bytes+len(record.Text)
	return Outcome{Entry: entryOf(next), Created: !known}
}

// maxSure is up to which length a record can be read again, in bytes. A longer one may be too long for that.
const maxSure = 32 << 10

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
