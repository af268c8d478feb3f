package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/snapshot"
)

// last is the number of the newest hold.
func (all *holds) last() uint64 {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.numbers
}

// copyHolds copies the holds up to a number. Those that are newer than the copy of the
// shards would have something to give back that is not charged there.
func (c *core) copyHolds(up uint64) []hold {
	c.holds.mu.Lock()
	defer c.holds.mu.Unlock()
	var kept []hold
	for _, h := range c.holds.byID {
		if h.number > up {
			continue
		}
		one := *h
		one.parts = nil
		for _, p := range h.parts {
			p.shard.mu.Lock()
			part := *p
			p.shard.mu.Unlock()
			one.parts = append(one.parts, &part)
		}
		kept = append(kept, one)
	}
	slices.SortFunc(kept, func(a, b hold) int { return cmp.Compare(a.number, b.number) })
	return kept
}

// write writes a hold as readHolds reads it.
func (h *hold) write(out *snapshot.Writer) {
	out.Words(1)
	out.Raw(h.id[:])
	out.Words(int64(h.state), int64(h.expires), int64(h.until), int64(len(h.parts)))
	for _, p := range h.parts {
		l := p.limit.Limit()
		out.Texts(l.Name, p.tag)
		out.Words(int64(l.Algorithm), l.N, l.Burst, int64(l.Period), int64(l.Buckets), word(l.Shape), word(l.CountDenied), word(l.Release))
		out.Words(int64(p.id.hi), int64(p.id.lo), p.Cost, int64(p.Receipt), p.Level, int64(p.At), word(p.gone))
	}
	out.Words(int64(len(h.settled)))
	for _, s := range h.settled {
		out.Texts(s.Tag)
		out.Words(s.Cost, s.Used, s.Excess)
	}
}

func word(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// readHolds reads the holds of a snapshot. A hold whose time has come meanwhile ends as any
// other, by its time.
func (c *core) readHolds(in *snapshot.Reader, now weir.Micros, maxKeys int64) {
	var count int64
	for ; in.More(); count++ {
		h := c.readHold(in)
		if in.Err != nil {
			return
		}
		full := int64(len(c.holds.byID)) >= maxKeys/maxRemembered || int64(c.holds.open+len(h.parts)) > maxKeys/2
		if full || c.holds.byID[h.id] != nil || h.state != weir.HoldOpen && h.until <= now {
			continue // of a larger store, forged, or to be forgotten
		}
		c.holds.addLocked(h)
		for _, p := range h.parts {
			if !p.gone {
				p.shard.holdLocked(p)
			}
		}
	}
	in.Must(in.Word() == count)
}

func (c *core) readHold(in *snapshot.Reader) *hold {
	h := &hold{}
	in.Raw(h.id[:])
	h.state = weir.HoldState(in.Between(int64(weir.HoldOpen), int64(weir.HoldExpired)))
	h.expires, h.until = weir.Micros(in.Between(0, exact)), weir.Micros(in.Between(0, exact))
	parts := in.Between(0, weir.MaxOps)
	in.Must(h.state == weir.HoldOpen || parts == 0)
	for ; parts > 0 && in.Err == nil; parts-- {
		h.parts = append(h.parts, c.readPart(in, h.expires))
	}
	for n := in.Between(0, weir.MaxOps); n > 0 && in.Err == nil; n-- {
		h.settled = append(h.settled, weir.SettledPart{
			Tag: in.Text(0, weir.MaxTagLen), Cost: in.Between(0, exact), Used: in.Between(0, maxUsed), Excess: in.Between(0, maxUsed),
		})
	}
	return h
}

// maxUsed is what Settlement.Used may return.
const maxUsed = 1<<63 - 1

func (c *core) readPart(in *snapshot.Reader, expires weir.Micros) *heldPart {
	p := &heldPart{expires: expires}
	l := weir.Limit{Name: in.Text(0, weir.MaxNameLen)}
	p.tag = in.Text(0, weir.MaxTagLen)
	l.Algorithm = weir.Algorithm(in.Between(0, 255))
	l.N, l.Burst, l.Period = in.Word(), in.Word(), time.Duration(in.Word())
	l.Buckets = int(in.Between(0, weir.MaxBuckets))
	l.Shape, l.CountDenied, l.Release = in.More(), in.More(), in.More()
	p.id = id{uint64(in.Word()), uint64(in.Word())}
	in.Must(p.id.lo&(1|deniedBit) == 1)
	p.Cost, p.Receipt = in.Between(1, exact), weir.Micros(in.Between(0, exact))
	p.Level, p.At = in.Between(-exact, exact), weir.Micros(in.Between(-exact, exact))
	p.gone = in.More()
	limit, err := l.Compile()
	in.Must(err == nil)
	p.limit, p.shard = limit, &c.shards[p.id.lo>>c.shift]
	return p
}
