package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/notation"
)

// beginSnapshot lets holds be known that are opened from now on: they would have something to give back that is
// not charged in the copy of the keys.
func (c *core) beginSnapshot() {
	for i := range c.holds {
		sh := &c.holds[i]
		sh.mu.Lock()
		if sh.copying { // the last one has failed
			sh.copyLocked(func(*hold) {})
		}
		sh.copying = true
		sh.mu.Unlock()
	}
}

// copyLocked is for a snapshot that needs holds from before it no longer, and new ones not at all.
func (sh *holdShard) copyLocked(do func(*hold)) {
	for h := range sh.open.all() {
		if h.record == isHold {
			do(h)
		}
		h.record = isHold
	}
	sh.copying = false
}

// savedHold is an open hold in a snapshot.
type savedHold struct {
	id      weir.HoldID
	expires weir.Micros
	parts   []savedPart
}

type savedPart struct {
	weir.Held
	limit  *weir.Compiled
	tag    string
	id     id
	listed bool
}

// copyHolds copies the holds of a shard; of those that are open, the ones from before the snapshot.
func (c *core) copyHolds(sh *holdShard) (open []savedHold, ended [][]byte) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.copyLocked(func(h *hold) {
		var buf [8]int
		order := c.lockOrderOf(sh, h, buf[:0])
		c.lock(order)
		one := savedHold{id: h.id, expires: h.expires}
		for _, p := range sh.open.parts(h) {
			held := p.at(0)
			if p.isListed() {
				held = p.under.among.held(p)
			}
			one.parts = append(one.parts, savedPart{held, p.under.limit, p.under.tag, p.key(), p.isListed()})
		}
		c.unlock(order)
		open = append(open, one)
	})
	for i, chunk := range sh.ended.chunks {
		if i == 0 {
			chunk = chunk[sh.ended.begin:]
		}
		ended = append(ended, slices.Clone(chunk))
	}
	return open, ended
}

// write writes an open hold as readHold reads it.
func (h *savedHold) write(out *disk.Writer) {
	writeHead(out, h.id, weir.HoldOpen, h.expires, h.expires, len(h.parts))
	for i := range h.parts {
		p := &h.parts[i]
		l := p.limit.Limit()
		out.Texts(l.Name, p.tag, l.ZoneName(), l.Starts)
		out.Words(int64(l.Algorithm), l.N, l.Burst, int64(l.Period), int64(l.Buckets), word(l.Shape), word(l.CountDenied), word(l.Release))
		out.Words(int64(p.id.hi), int64(p.id.lo), p.Cost, int64(p.Receipt), p.Level, int64(p.At), word(!p.listed))
	}
	out.Words(0)
}

// write writes a hold that has ended in the same way.
func (e endedHold) write(out *disk.Writer) {
	writeHead(out, e.id(), e.state(), e.until(), e.until(), 0)
	parts := e.answer().Parts
	out.Words(int64(len(parts)))
	for _, p := range parts {
		out.Texts(p.Tag)
		out.Words(p.Cost, p.Used, p.Excess)
	}
}

func writeHead(out *disk.Writer, id weir.HoldID, state weir.HoldState, expires, until weir.Micros, parts int) {
	out.Words(1)
	out.Raw(id[:])
	out.Words(int64(state), int64(expires), int64(until), int64(parts))
}

func word(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// readHolds reads the holds of a snapshot. A hold whose time has come meanwhile ends as any
// other, by its time.
func (c *core) readHolds(in *disk.Reader, now weir.Micros) {
	var count int64
	type restored struct {
		savedPart
		hold *hold
	}
	var parts []restored
	limits := limits{}
	for ; in.More(); count++ {
		h, settled, state, until := limits.readHold(in)
		if in.Err != nil {
			return
		}
		sh := c.holdShard(&h.id)
		full := sh.open.count+sh.ended.count >= c.maxHolds || state == weir.HoldOpen && sh.open.records+len(h.parts) > c.maxParts
		if full || sh.findLocked(&h.id) != nil || state != weir.HoldOpen && until <= now {
			continue // of a larger store, forged, or to be forgotten
		}
		if state != weir.HoldOpen {
			sh.putLocked(&h.id, sh.ended.add(&h.id, settled, state, until))
			continue
		}
		o := opening{shard: sh, reservation: &weir.Reservation{ID: h.id}, expires: h.expires}
		for _, p := range h.parts {
			parts = append(parts, restored{p, o.add()})
		}
		o.concludeLocked()
	}
	slices.SortFunc(parts, func(a, b restored) int { // as they were reserved on a bucket
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Level, b.Level))
	})
	for _, p := range parts {
		keys := c.shardOf(p.id)
		slot, found := keys.table.find(p.id)
		keys.holdLocked(p.hold, terms{limit: p.limit, tag: p.tag}, p.id, slot, found && p.listed, p.Held, 0)
	}
	in.Must(in.Word() == count)
}

// limits are those of holds that were read: many have the same.
type limits map[weir.Limit]*weir.Compiled

func (ls limits) readHold(in *disk.Reader) (h *savedHold, settled []weir.SettledPart, state weir.HoldState, until weir.Micros) {
	h = &savedHold{}
	in.Raw(h.id[:])
	state = weir.HoldState(in.Between(int64(weir.HoldOpen), int64(weir.HoldExpired)))
	h.expires, until = weir.Micros(in.Between(0, exact)), weir.Micros(in.Between(0, exact))
	parts := in.Between(0, weir.MaxOps)
	in.Must(state == weir.HoldOpen || parts == 0)
	for ; parts > 0 && in.Err == nil; parts-- {
		h.parts = append(h.parts, ls.readPart(in))
	}
	ended := in.Between(0, weir.MaxOps)
	in.Must(state == weir.HoldSettled || ended == 0)
	for ; ended > 0 && in.Err == nil; ended-- {
		settled = append(settled, weir.SettledPart{Tag: in.Text(0, weir.MaxTagLen), Cost: in.Between(0, exact), Used: in.Between(0, maxUsed), Excess: in.Between(0, maxUsed)})
	}
	return h, settled, state, until
}

// maxUsed is what Settlement.Used may return.
const maxUsed = 1<<63 - 1

// maxText bounds the texts of a limit.
const maxText = 200

// zoneOf finds a zone. The hold of one that has been removed from the zone data ends its
// periods in UTC.
func zoneOf(name string) *time.Location {
	if found, err := notation.LoadZone(name); err == nil {
		return found
	}
	return time.UTC
}

func (ls limits) readPart(in *disk.Reader) (p savedPart) {
	l := weir.Limit{Name: in.Text(0, weir.MaxNameLen)}
	p.tag = in.Text(0, weir.MaxTagLen)
	if in.Version >= 4 {
		if name := in.Text(0, maxText); name != "" {
			l.Zone = zoneOf(name)
		}
		l.Starts = in.Text(0, maxText)
	}
	l.Algorithm = weir.Algorithm(in.Between(0, 255))
	l.N, l.Burst, l.Period = in.Word(), in.Word(), time.Duration(in.Word())
	l.Buckets = int(in.Between(0, weir.MaxBuckets))
	l.Shape, l.CountDenied, l.Release = in.More(), in.More(), in.More()
	p.id = id{uint64(in.Word()), uint64(in.Word())}
	in.Must(p.id.lo&(1|deniedBit) == 1)
	p.Cost, p.Receipt = in.Between(1, exact), weir.Receipt(in.Between(0, exact))
	p.Level, p.At = in.Between(-exact, exact), weir.Micros(in.Between(-exact, exact))
	p.listed = !in.More()
	if p.limit = ls[l]; p.limit == nil {
		limit, err := l.Compile()
		in.Must(err == nil)
		p.limit, ls[l] = limit, limit
	}
	return p
}
