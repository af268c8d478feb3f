package stats

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// collector adds up what the stripes have counted.
type collector struct {
	mu       sync.Mutex
	index    *index
	second   int64 // that is being counted
	frame    *frame.Frame
	ten      int64 // the ten seconds that are being counted
	detail   *frame.Frame
	ranks    *ranks
	number   int64 // of parts that were made
	dropped  int64 // keys
	sampling int64

	spare     *block // empty, of index
	spareKeys []byte
}

func (c *collector) reset(x *index, now time.Time) {
	c.index, c.second, c.ten = x, now.Unix(), now.Unix()/10
	c.frame, c.detail, c.ranks = &frame.Frame{}, &frame.Frame{}, newRanks()
	c.spareKeys = make([]byte, 0, keysSize)
}

// tick is called a few times a second. It takes the keys, and what was counted when a
// second is over.
func (r *Recorder) tick(now time.Time) {
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	second := now.Unix()
	if second == c.second {
		r.drainKeysLocked()
		return
	}
	r.drainLocked(c.index)
	r.closeSecondLocked()
	c.second = second
	if second/10 != c.ten {
		r.closeTenLocked()
		c.ten = second / 10
	}
}

// close ends what is being counted, whether or not its time is over.
func (r *Recorder) close(now time.Time) {
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	r.drainLocked(c.index)
	r.closeSecondLocked()
	r.closeTenLocked()
	c.second, c.ten = now.Unix(), now.Unix()/10
}

func (r *Recorder) closeSecondLocked() {
	c := &r.collector
	r.routes.take(c.frame)
	c.frame.Trim()
	r.queue.closed(c.second, c.frame, r.partLocked(archive.Series, c.second, c.frame), c.frame.Requests.Total())
	c.frame = &frame.Frame{}
}

func (r *Recorder) closeTenLocked() {
	c := &r.collector
	r.queue.add(r.partLocked(archive.Rules, c.ten*10, c.detail))
	top := &frame.Frame{}
	c.ranks.put(top)
	r.queue.add(r.partLocked(archive.Top, c.ten*10, top))
	c.detail, c.ranks = &frame.Frame{}, newRanks()
}

// partLocked is what is sent of a frame; nil if nothing happened.
func (r *Recorder) partLocked(kind archive.Kind, start int64, f *frame.Frame) *archive.Part {
	if f.Empty() {
		return nil
	}
	r.collector.number++
	return &archive.Part{Kind: kind, Start: start, ID: fmt.Sprintf("%s.%d", r.name, r.collector.number), Frame: f.Append(nil)}
}

// drainKeysLocked takes the keys of all stripes.
func (r *Recorder) drainKeysLocked() {
	c := &r.collector
	c.sampling = 1
	for i := range r.stripes {
		s := &r.stripes[i]
		s.mu.Lock()
		full, dropped := s.block.keys.exchange(c.spareKeys)
		mask := s.block.keys.mask
		s.mu.Unlock()
		c.takeKeys(full, dropped, mask)
	}
}

func (c *collector) takeKeys(full []byte, dropped int64, mask uint32) {
	c.ranks.count(c.index, full)
	c.spareKeys = full
	c.dropped += dropped
	c.sampling = max(c.sampling, int64(mask)+1)
}

// drainLocked takes everything, and makes the stripes count for the given index from
// now on.
func (r *Recorder) drainLocked(next *index) {
	c := &r.collector
	c.sampling = 1
	for i := range r.stripes {
		fresh := c.spare
		if fresh == nil || fresh.index != next {
			fresh = newBlock(next)
		}
		s := &r.stripes[i]
		s.mu.Lock()
		full := s.block
		buf, dropped := full.keys.exchange(c.spareKeys)
		fresh.keys, full.keys = full.keys, keys{}
		s.block = fresh
		mask := fresh.keys.mask
		s.mu.Unlock()
		c.takeKeys(buf, dropped, mask)
		c.add(full)
		full.clear()
		c.spare = full
	}
	c.index = next
}

// add adds up a block.
func (c *collector) add(b *block) {
	c.frame.Requests.Add(b.requests.counts())
	b.decision.addTo(&c.frame.Decision)
	for _, p := range b.index.rules {
		used := false
		for i, tier := range p.tiers {
			if cell := &b.cells[p.cell+i]; *cell != (tally{}) {
				used = true
				c.frame.Rule(frame.Line{Rule: p.id, Tier: tier}).Add(cell.counts())
			}
		}
		if !used {
			continue
		}
		d := c.detail.Detail(p.id)
		b.rules[p.number].addTo(&d.Decision)
		for i, tier := range p.tiers {
			if tier == frame.Other {
				continue // it is counted with ""
			}
			for _, l := range p.limits[i] {
				if g := &b.gauges[l.gauge]; *g != (gauge{}) {
					g.addTo(d.Quota(frame.Quota{Tier: tier, Period: l.period}))
				}
			}
		}
	}
}

func (t *times) addTo(h *frame.Histogram) {
	for slot, n := range t.slots {
		h.Put(uint8(slot), int64(n))
	}
	h.Sum += t.sum
}

func (g *gauge) addTo(u *frame.Usage) {
	for slot, n := range g.slots {
		u.Used.Put(uint8(slot), int64(n))
	}
	u.Denied += int64(g.denied)
}

// clear makes a block empty where something was counted.
func (b *block) clear() {
	b.requests, b.decision = tally{}, times{}
	for _, p := range b.index.rules {
		for i := range p.tiers {
			if cell := &b.cells[p.cell+i]; *cell != (tally{}) {
				*cell = tally{}
				b.rules[p.number] = times{}
				for _, l := range p.limits[i] {
					b.gauges[l.gauge] = gauge{}
				}
			}
		}
	}
}
