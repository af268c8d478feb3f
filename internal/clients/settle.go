package clients

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weirhq/weir/rule"
)

// settler brings records that are valid together into a directory, in whatever order they come.
type settler struct {
	edit    *rule.DirectoryEdit
	pending map[string]change // the last of each name that could not be made yet
	bad     error             // the first record that cannot be used

	unusable map[string]Record // all that cannot be used
}

// change is a client as it should be.
type change struct {
	client  rule.Client
	deleted bool
	record  Record
}

func newSettler(d *rule.Directory) *settler {
	return &settler{edit: d.Edit(), pending: map[string]change{}, unusable: map[string]Record{}}
}

// takeRecord takes a record. The last of a name counts.
func (s *settler) takeRecord(r Record) {
	c := change{client: rule.Client{Name: r.Name}, deleted: len(r.Text) == 0, record: r}
	delete(s.unusable, r.Name)
	if !c.deleted {
		var err error
		if c.client, err = r.client(); err != nil {
			s.bad = cmp.Or(s.bad, err)
			s.unusable[r.Name] = r
			return
		}
	}
	delete(s.pending, r.Name)
	if s.make(c) != nil {
		s.pending[r.Name] = c
	}
}

// make makes a change. To delete what is not there is none.
func (s *settler) make(c change) error {
	if c.deleted {
		err := s.edit.Remove(c.client.Name)
		if wrong, ok := errors.AsType[*rule.DirectoryError](err); ok && wrong.Fault == rule.NoClient {
			return nil
		}
		return err
	}
	return s.edit.Put(c.client)
}

// settle makes the rest, and returns the directory. What belongs to nobody is left out, and the error tells of one.
func (s *settler) settle() (*rule.Directory, error) {
	s.retry()
	if len(s.pending) > 0 { // two that change places: first without those above them
		for _, c := range s.pending {
			c.client.Parent = ""
			if _, known := s.edit.Find(c.client.Name); known && !c.deleted {
				_ = s.make(change{client: c.client})
			}
		}
		s.retry()
	}
	if len(s.unusable) == 0 {
		s.bad = nil // what came later can be used
	}
	for name, c := range s.pending {
		s.bad = cmp.Or(s.bad, fmt.Errorf("the entry of %.80q cannot be used: %w", name, s.make(c)))
		s.unusable[name] = c.record
	}
	return s.edit.Directory(), s.bad
}

// retry makes what can be made by now.
func (s *settler) retry() {
	for before := -1; len(s.pending) > 0 && len(s.pending) != before; {
		before = len(s.pending)
		s.edit = s.edit.Directory().Edit() // which may look at all clients again
		for name, c := range s.pending {
			if s.make(c) == nil {
				delete(s.pending, name)
			}
		}
	}
}
