package stats

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// collector adds up what the stripes have counted.
type collector struct {
	mu       sync.Mutex
	lines    map[frame.Line]*line // of rules; those that went out of force for a while
	second   int64                // that is being counted
	frame    *frame.Frame
	ten      int64 // the ten seconds that are being counted
	detail   *frame.Frame
	ranks    *ranks
	number   int64 // of parts that were made
	dropped  int64 // samples
	sampling int64
	spare    []byte // for samples, empty
}

func (c *collector) reset(now time.Time) {
	c.lines = map[frame.Line]*line{}
	c.second, c.ten = now.Unix(), now.Unix()/10
	c.frame, c.detail, c.ranks = &frame.Frame{}, &frame.Frame{}, newRanks()
	c.spare = make([]byte, 0, samplesSize)
}

// tick is called a few times a second. It takes the samples, and what was counted when a
// second is over.
func (r *Recorder) tick(now time.Time) {
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	second := now.Unix()
	r.takeSamplesLocked(r.index.Load())
	if second == c.second {
		return
	}
	r.takeCountsLocked()
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
	r.takeSamplesLocked(r.index.Load())
	r.takeCountsLocked()
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
	r.queue.put(r.partLocked(archive.Rules, c.ten*10, c.detail), 0)
	top := &frame.Frame{}
	c.ranks.put(top)
	r.queue.put(r.partLocked(archive.Top, c.ten*10, top), 0)
	c.detail, c.ranks = &frame.Frame{}, newRanks()
}

// partLocked is what is sent of a frame; nil if nothing happened.
func (r *Recorder) partLocked(kind archive.Kind, start int64, f *frame.Frame) *archive.Part {
	if f.Empty() {
		return nil
	}
	r.collector.number++
	p := &archive.Part{Kind: kind, Start: start, ID: fmt.Sprintf("%s.%d", r.name, r.collector.number), Frame: f.Append(nil)}
	r.keepOwn(p)
	return p
}

// takeSamplesLocked takes the samples of all stripes, which then are taken with the
// given index.
func (r *Recorder) takeSamplesLocked(next *index) {
	c := &r.collector
	c.sampling = 1
	for i := range r.stripes {
		s := &r.stripes[i]
		s.mu.Lock()
		x := s.index
		full, dropped := s.exchange(c.spare)
		s.index = next
		s.mu.Unlock()
		c.count(x, full)
		c.spare = full
		c.dropped += dropped
		c.sampling = max(c.sampling, 1<<s.power.Load())
	}
}

// count reads samples.
func (c *collector) count(x *index, buf []byte) {
	for len(buf) > 0 {
		p := x.rules[binary.LittleEndian.Uint16(buf)]
		tier, n, f, limits := int(buf[2]), int64(1)<<buf[3], flags(buf[4]), int(buf[5])
		key := int(binary.LittleEndian.Uint16(buf[6:]))
		buf = buf[sampleHead:]
		for i := range limits {
			c.use(p, tier, i, int(binary.LittleEndian.Uint16(buf[2*i:])), n)
		}
		buf = buf[2*limits:]
		if p.keyed {
			c.ranks.count(p.id, f, buf[:key], n)
		}
		if key > 0 && f&otherKey == 0 {
			c.frame.Clients.Add(hashOf(buf[:key]), f&requestDenied != 0)
		}
		buf = buf[key:]
	}
}

// hashOf is the same in every process: FNV-1a, with MurmurHash3's last step, because
// keys that differ little must not have hashes that do.
func hashOf(key []byte) uint64 {
	h := fnv.New64a()
	h.Write(key)
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// use counts how much of a limit was in use.
func (c *collector) use(p *place, tier, limit, used int, n int64) {
	if used == limitOther {
		return
	}
	name := p.lines[tier].Tier
	if name == frame.Other { // whose limits are those of ""
		name = ""
	}
	u := c.detail.Detail(p.id).Quota(frame.Quota{Tier: name, Period: p.limits[tier][limit].period})
	if used == limitDenied {
		u.Denied += n
	} else {
		u.Used.Put(uint8(used), n)
	}
}

// remembered is for how many seconds a line is kept whose rule is not in force any more:
// a request may still be counting there. If rules change so often that there are
// maxLines, unused lines are dropped earlier.
const (
	remembered = 10
	maxLines   = 10_000
)

// takeCountsLocked takes what was counted.
func (r *Recorder) takeCountsLocked() {
	c := &r.collector
	requests := func(said engine.Outcome, h *frame.Histogram) {
		c.frame.Requests.Add(outcomeCounts(said, h.Count))
		c.frame.Decision.Merge(h)
	}
	r.requests.take(func(_ int, said engine.Outcome, h *frame.Histogram) { requests(said, h) })
	for key, l := range c.lines {
		l.take(func(with int, said engine.Outcome, h *frame.Histogram) {
			if with == alone {
				requests(said, h)
			}
			c.frame.Rule(l.Line).Add(outcomeCounts(said, h.Count))
			c.detail.Detail(l.Rule).Decision.Merge(h)
		})
		if l.left != 0 && c.second-l.left > remembered {
			delete(c.lines, key)
		}
	}
}
