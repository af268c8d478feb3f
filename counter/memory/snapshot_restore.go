package memory

import (
	"errors"
	"io"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/disk"
)

// Restore fills an empty store from a snapshot. It skips counts that have expired
// since. If this store keeps counts for a shorter time than the one that wrote the snapshot, they
// expire as if they had just been changed. If the snapshot has more entries than MaxEntries,
// Restore keeps them all, and the store is full until enough of them have expired. Restore skips
// the lowest members of lists beyond MaxMembers. If the snapshot is truncated, damaged or not a
// snapshot, Restore returns an error that says so, and the store stays empty and usable.
func (s *Store) Restore(r io.Reader) error {
	s.snapshot.Lock()
	defer s.snapshot.Unlock()
	restored, err := s.readRoom(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.room.entries) > 0 {
		return errors.New("counter: the store has been used already; restore a snapshot before anything is counted")
	}
	s.room = *restored
	return nil
}

// readRoom reads a snapshot.
func (s *Store) readRoom(r io.Reader) (*room, error) {
	now := s.clock()
	restored := &room{most: s.room.most, entries: map[ident]*entry{}}
	err := format.Read(r, func(r *disk.Reader) {
		for in := (&disk.Codec{In: r}); r.More(); {
			e := &entry{}
			e.walk(in)
			r.Must(restored.entries[e.id] == nil)
			if r.Err != nil {
				continue
			}
			if e.expires = min(e.expires, now+s.longest(e.id)+grace); now < e.expires {
				s.fit(e.body)
				restored.put(e)
			}
		}
	})
	return restored, err
}

// longest is how long an entry of this kind is kept after a change.
func (s *Store) longest(id ident) weir.Micros {
	switch id.kind {
	case kindCounter, kindDistinct:
		return micros(s.kept.After(id.window))
	case kindDistribution:
		return micros(s.kept.DistributionAfter(id.window))
	case kindBoard:
		return micros(s.kept.BoardAfter(id.window))
	}
	return 1 << 62 // as its own window says, which has no setting
}

// fit drops the members that are too many for this store.
func (s *Store) fit(b body) {
	switch x := b.(type) {
	case *board:
		for i := range x.ring {
			if w := &x.ring[i]; len(w.table) > s.maxMembers {
				w.dropped += int64(len(w.table.trim(s.roomFor())))
			}
		}
	case *sliding:
		x.trim(s.maxMembers, s.roomFor())
	case *hot:
		if x.trim(s.maxMembers, s.roomFor()) {
			// Some hot items may have been dropped. No list has this threshold, so the next call
			// looks at all items.
			x.threshold, x.cool = 0, 0
		}
	}
}

// put adds an entry as the newest.
func (r *room) put(e *entry) {
	r.entries[e.id] = e
	r.byExpiry.Push(e)
	r.link(e)
	r.weigh(e)
}
