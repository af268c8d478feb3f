package memory

import (
	"cmp"
	"io"
	"slices"

	"github.com/weirhq/weir/internal/disk"
)

// A snapshot is, for each entry, that which was changed the longest time ago first:
//
//	the word 1, kind, when it expires, what it is found by, and its body
//
// and then the word 0. Version 2 had no windows above a day, no distinct counters and no
// distributions.
var format = disk.Format{Package: "counter", Magic: "weircoun", Of: "counters", Version: 3, Oldest: 2}

// Snapshot writes all counts to w, so that they survive a restart: counters with their
// history, sequences, leaderboards, and hot lists with their events. It is consistent
// as of one instant. The store stays in use meanwhile: calls wait while about a
// thousand entries or one large leaderboard are copied, but not while Snapshot writes.
// Snapshot needs about as much memory as it writes.
func (s *Store) Snapshot(w io.Writer) error {
	s.snapshot.Lock()
	defer s.snapshot.Unlock()
	s.beginSaving()
	for s.saveSome() {
	}
	return writeRecords(w, s.endSaving())
}

func writeRecords(w io.Writer, records []record) error {
	return format.Write(w, func(out *disk.Writer) {
		for _, r := range records {
			out.Words(1)
			out.Raw(r.bytes)
		}
		out.Words(0)
	})
}

// saving is a snapshot in progress. It copies a few entries at a time. A call that needs an
// entry that is not copied yet saves it first, as it was when the snapshot began.
type saving struct {
	number  uint64
	next    *entry // where to go on
	last    uint64 // the order of the newest entry when it began
	records []record
	chunk   disk.Codec // what the latest records are in
}

// record is an entry as it was.
type record struct {
	order uint64
	bytes []byte
}

const (
	// saveAtOnce is how much is saved before others get the store: about so many
	// entries.
	saveAtOnce = 1000

	chunkSize = 1 << 18
)

func (s *Store) beginSaving() {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.room
	r.snapshots++
	r.saving = &saving{
		number: r.snapshots, next: r.oldest, last: r.changes, records: make([]record, 0, len(r.entries)),
	}
}

// saveSome saves a few entries, and reports whether there may be more.
func (s *Store) saveSome() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.room
	for done := 0; done < saveAtOnce; {
		e := r.saving.next
		if e == nil || e.order > r.saving.last {
			return false // what comes now was changed since, and saved before that
		}
		r.saving.next = e.newer
		r.save(e)
		done += e.weight
	}
	return true
}

// endSaving returns what was saved, that which was changed the longest time ago first.
func (s *Store) endSaving() []record {
	s.mu.Lock()
	records := s.room.saving.records
	s.room.saving = nil
	s.mu.Unlock()
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.order, b.order) })
	return records
}

// save keeps what an entry is for the snapshot that is being taken, if there is one that
// does not have it yet.
func (r *room) save(e *entry) {
	s := r.saving
	if s == nil || e.saved == s.number {
		return
	}
	e.saved = s.number
	if len(s.chunk.Out) >= chunkSize || s.chunk.Out == nil {
		s.chunk.Out = make([]byte, 0, chunkSize+chunkSize/4)
	}
	start := len(s.chunk.Out)
	e.walk(&s.chunk)
	s.records = append(s.records, record{e.order, s.chunk.Out[start:]})
}
