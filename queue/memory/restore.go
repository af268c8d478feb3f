package memory

import (
	"fmt"
	"io"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/queue"
)

// Restore fills an empty store from a snapshot. It restores all items, even if a
// capacity was lowered since, and keeps the items of queues that are no longer declared
// for the next snapshot. If the snapshot is truncated, damaged or not a snapshot,
// Restore returns an error that says so, and the store stays empty and usable.
func (s *Store) Restore(r io.Reader) error {
	lines, err := readLines(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.lines {
		if l.last != 0 {
			return fmt.Errorf("memory: the queue %s has been used already; restore a snapshot before the first push", name)
		}
	}
	for name, l := range lines {
		l.terms = s.terms[name]
		if old := s.lines[name]; old != nil {
			l.watchers = old.watchers
		}
		s.lines[name] = l
	}
	return nil
}

func readLines(r io.Reader) (map[string]*line, error) {
	lines := map[string]*line{}
	err := format.Read(r, func(r *disk.Reader) {
		for in := (&decoder{r}); in.More(); {
			name := in.Text(1, queue.MaxNameLen)
			in.Must(lines[name] == nil)
			lines[name] = in.line()
		}
	})
	return lines, err
}

// decoder reads what queues are made of.
type decoder struct{ *disk.Reader }

// exact reads a word that a script could count with, as all are.
func (d *decoder) exact() int64 { return d.Between(0, 1<<53-1) }

func (d *decoder) pace() queue.Pace {
	p := queue.Pace{Next: weir.Micros(d.exact()), Part: d.exact(), Rate: d.exact()}
	d.Must(p.Part == 0 || p.Part < p.Rate)
	return p
}

func (d *decoder) line() *line {
	l := newLine(nil)
	l.last, l.pace, l.dropped = d.Between(0, 1<<52), d.pace(), d.exact()
	before := int64(0)
	for d.More() {
		i := d.item()
		d.Must(i.number > before && i.number <= l.last && (i.id == "" || l.ids[i.id] == nil))
		if d.Err != nil {
			return l
		}
		before = i.number
		l.put(i)
	}
	for d.More() {
		id, until := d.Text(1, queue.MaxIDLen), weir.Micros(d.exact())
		d.Must(l.done.byID[id] == nil)
		if d.Err == nil {
			l.done.add(id, until, queue.MaxCapacity)
		}
	}
	return l
}

// put adds an item where it was.
func (l *line) put(i *item) {
	l.items[i.number] = i
	if i.id != "" {
		l.ids[i.id] = i
	}
	if i.state == queue.Dead {
		l.dead = append(l.dead, i) // the numbers rise
		return
	}
	l.pileOf(i.state).Push(i)
}

func (d *decoder) item() *item {
	i := &item{
		number: d.exact(), state: states[d.Between(0, int64(len(states)-1))], tries: int(d.Between(0, queue.MaxTries+1)),
		pushed: weir.Micros(d.exact()), due: weir.Micros(d.exact()), died: weir.Micros(d.exact()), slot: d.pace(),
		id: d.Text(0, queue.MaxIDLen), secret: d.Text(0, 32), reason: d.Text(0, queue.MaxReasonLen), payload: d.Bytes(0, queue.MaxPayload),
	}
	waits := slices.Contains([]queue.State{queue.Delayed, queue.Leased}, i.state)
	d.Must(waits == (i.due > 0) && (i.state != queue.Leased || i.secret != "" && i.tries > 0))
	return i
}
