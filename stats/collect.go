package stats

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// collector adds up what the stripes have counted.
type collector struct {
	mu       sync.Mutex
	lines    map[archive.Line]*line // of rules; those that went out of force for a while
	second   int64                  // that is being counted
	frame    *archive.Frame
	warned   archive.Warned // of this second
	ten      int64          // the ten seconds that are being counted
	detail   *archive.Frame
	ranks    *ranks
	spend    spend
	number   int64 // of parts that were made
	dropped  int64 // samples
	sampling int64
	spare    []byte    // for samples, empty
	none     []sampled // for denials
}

func (c *collector) reset(now time.Time) {
	c.lines = map[archive.Line]*line{}
	c.second, c.ten = now.Unix(), now.Unix()/10
	c.frame, c.detail, c.ranks = &archive.Frame{}, &archive.Frame{}, newRanks()
	c.spend = spend{}
	c.spare = make([]byte, 0, samplesSize)
}

// tick is called at least once a second. It takes the samples, and what was counted when
// a second is over. It returns how long the next look may wait, unless a stripe says that
// there are many samples.
func (r *Recorder) tick(now time.Time) (rest time.Duration) {
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	second := now.Unix()
	rest = time.Second
	if r.takeSamplesLocked(r.index.Load()) {
		rest = look
	}
	if second == c.second {
		return rest
	}
	r.takeCountsLocked()
	r.closeSpendLocked()
	r.closeTenLocked(second / 10)
	r.closeSecondLocked() // the last one, because it wakes who sends
	c.second = second
	return rest
}

// close ends what is being counted, whether or not its time is over.
func (r *Recorder) close(now time.Time) {
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	r.takeSamplesLocked(r.index.Load())
	r.takeCountsLocked()
	r.closeSpendLocked()
	r.closeDetailLocked()
	r.closeTenLocked(now.Unix() / 10)
	r.closeSecondLocked()
	c.second = now.Unix()
}

func (r *Recorder) closeSecondLocked() {
	c := &r.collector
	r.takeFlights(c.frame)
	c.frame.Trim()
	if !c.frame.Empty() {
		r.putLocked(&archive.Part{Kind: archive.Series, Start: c.second, ID: r.nextIDLocked(), Frame: c.frame.Append(nil)}, c.frame.Requests.Total())
	}
	r.queue.closed(closed{c.second, c.frame, c.warned})
	c.frame = &archive.Frame{}
}

// closeTenLocked sends the rankings as they are, every second, and begins new ones if the
// ten seconds are over.
func (r *Recorder) closeTenLocked(next int64) {
	c := &r.collector
	r.reviseLocked(&c.ranks.draft, archive.Top, c.ten*10, func() *archive.Frame {
		top := &archive.Frame{Denials: c.ranks.denials.list(r.options.Instance), Warned: c.ranks.warned}
		c.ranks.put(top)
		return top
	})
	if next != c.ten {
		r.closeDetailLocked()
		c.ten, c.ranks = next, newRanks()
	}
}

func (r *Recorder) closeDetailLocked() {
	c := &r.collector
	if !c.detail.Empty() {
		r.putLocked(&archive.Part{Kind: archive.Rules, Start: c.ten * 10, ID: r.nextIDLocked(), Frame: c.detail.Append(nil)}, 0)
		c.detail = &archive.Frame{}
	}
}

// draft is a part that is sent every second in which it has changed, each time with everything so far.
type draft struct {
	id       string
	revision int64
	changed  bool // since it was sent
}

func (r *Recorder) reviseLocked(d *draft, kind archive.Kind, start int64, frame func() *archive.Frame) {
	if !d.changed {
		return
	}
	if d.id == "" {
		d.id = r.nextIDLocked()
	}
	d.changed = false
	d.revision++
	r.putLocked(&archive.Part{Kind: kind, Start: start, ID: d.id, Revision: d.revision, Frame: frame().Append(nil)}, 0)
}

func (r *Recorder) nextIDLocked() string {
	r.collector.number++
	return fmt.Sprintf("%s.%d", r.name, r.collector.number)
}

// putLocked lets a part wait to be sent, and keeps it here, too.
func (r *Recorder) putLocked(p *archive.Part, requests int64) {
	r.keepOwn(p)
	r.queue.put(p, requests)
}

// takeSamplesLocked takes the samples of all stripes, which then are taken with the
// given index. It reports whether there were many, or not all were taken.
func (r *Recorder) takeSamplesLocked(next *index) (many bool) {
	c := &r.collector
	c.sampling = 1
	for i := range r.stripes {
		s := &r.stripes[i]
		s.mu.Lock()
		x := s.index
		full, denied, dropped := s.exchange(c.spare, c.none)
		s.index = next
		s.mu.Unlock()
		c.count(x, full)
		for i := range denied {
			c.ranks.denials.add(&denied[i])
			c.ranks.changed = true
		}
		c.spare, c.none = full, denied
		c.dropped += dropped
		c.sampling = max(c.sampling, 1<<s.power.Load())
		many = many || len(full) >= cap(full)*manySixteenths/16
	}
	return many || c.sampling > 1
}

// count reads samples.
func (c *collector) count(x *index, buf []byte) {
	for len(buf) > 0 {
		p := x.All[binary.LittleEndian.Uint16(buf)]
		tier, n, f, limits := int(buf[2]), int64(1)<<buf[3], flags(buf[4]), int(buf[5])
		key, denier := int(binary.LittleEndian.Uint16(buf[6:])), binary.LittleEndian.Uint16(buf[8:])
		buf = buf[sampleHead:]
		c.ranks.sampling = max(c.ranks.sampling, n)
		for i := range limits {
			c.use(p, tier, i, int(binary.LittleEndian.Uint16(buf[2*i:])), n)
		}
		buf = buf[2*limits:]
		if key > 0 {
			c.ranks.count(p.id, f, buf[:key], n)
		}
		if denier != noDenier {
			c.ranks.of(archive.Others + x.All[denier].id)[1].Add(buf[:key], n)
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
func (c *collector) use(p *ruleIndex, tier, limit, used int, n int64) {
	if used == limitOther {
		return
	}
	name := p.lines[tier].Tier
	if name == archive.Other { // whose limits are those of ""
		name = ""
	}
	u := c.detail.Detail(p.id).Quota(archive.Quota{Tier: name, Period: p.limits[tier][limit].period})
	if used == limitDenied {
		u.Denied += n
	} else {
		u.Used.Put(uint8(used), n)
	}
}

// takeLevels takes what levels have denied.
func (c *collector) takeLevels(x *index) {
	for _, p := range x.All {
		for name, denied := range p.levels.All {
			if denied.Load() > 0 {
				*c.frame.Level(archive.RuleLevel{Rule: p.id, Level: name}) += int64(denied.Swap(0))
			}
		}
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
	requests := func(said engine.Outcome, h *archive.Histogram) {
		c.frame.Requests.Add(outcomeCounts(said, h.Count))
		c.frame.Decision.Merge(h)
	}
	by := map[rule.Priority]*archive.Counts{rule.Critical: &c.frame.Priorities.Critical, rule.High: &c.frame.Priorities.High, rule.Low: &c.frame.Priorities.Low}
	for i := range r.stripes {
		for p, counts := range by {
			for said := range outcomes {
				if at := &r.stripes[i].priorities[p][said]; at.Load() > 0 {
					counts.Add(outcomeCounts(said, at.Swap(0)))
				}
			}
		}
	}
	r.requests.take(func(_ int, said engine.Outcome, h *archive.Histogram) { requests(said, h) })
	for key, l := range c.lines {
		l.take(func(with int, said engine.Outcome, h *archive.Histogram) {
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
	c.takeLevels(r.index.Load())
	events := r.events.take()
	c.warned, events.Warned = events.Warned, archive.Warned{}
	if c.warned.N > 0 {
		archive.SortWarnings(c.warned.List)
		c.ranks.changed = true
		c.ranks.warned.Merge(&c.warned)
		c.ranks.warned.Trim()
	}
	c.spend.add(c.second, &events)
	c.frame.Merge(&events)
}
