package stats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// samplesSize is the room for samples in a stripe, between two looks of the collector:
// about a thousand of them, some thousands a second and stripe. To count one takes a
// background goroutine a fifth of a microsecond, so that it is never busy with more
// than a percent of a core and stripe.
const samplesSize = 32 << 10

// stripe is one of several places to count in. Requests on different cores mostly find
// different ones.
//
// What a sheet cannot count of a verdict is in samples: who it was about, and how much
// of each limit was in use. One in 2^power is taken, and stands for as many.
type stripe struct {
	power  atomic.Uint32
	many   chan<- struct{}
	chance atomic.Uint64 // another one after each look: slots begin with 0 each second, and who comes first is not to be always taken, or never

	mu      sync.Mutex
	index   *index
	buf     []byte
	denials []sampled
	dropped int64 // requests whose samples found no room
	details details

	priorities [rule.Critical + 1][outcomes]atomic.Int64 // requests; normal ones are not counted
	_          [64]byte
}

// maxPower is the power of two of the lowest sampling rate.
const maxPower = 16

// maxStripes is enough for any number of cores.
const maxStripes = 16

// newStripes returns stripes that say when one of them has many samples.
func newStripes(many chan<- struct{}) []stripe {
	n := 2 // for each core, so that two of them seldom share one
	for n < min(2*runtime.GOMAXPROCS(0), maxStripes) {
		n *= 2
	}
	all := make([]stripe, n)
	for i := range all {
		all[i].many = many
		all[i].buf = make([]byte, 0, samplesSize)
		all[i].chance.Store(rand.Uint64())
		all[i].details.reset()
	}
	return all
}

// A sample is
//
//	2 bytes rule | 1 byte tier | 1 byte power | 1 byte flags | 1 byte limits | 2 bytes length of key | 2 bytes denier | limits | key
//
// where a limit is 2 bytes: the slot of its usage, or one of the two below. If a rule
// counts all clients together, the key is the client of the request by clientOf. The denier
// is another rule that denied the client, or noDenier.
const (
	sampleHead = 10

	noDenier = math.MaxUint16

	limitDenied = archive.HistogramSlots
	limitOther  = archive.HistogramSlots + 1

	maxLimits = 32 // of a rule, that are looked at
)

// flags say what became of a request, and what other rules have said of it.
type flags uint8

const (
	ruleDenied    flags = 1 << iota // by this rule, or would be
	ruleClosed                      // by this rule, which fails closed and was not asked
	requestDenied                   // by any
	sameKey                         // another rule stands for this key
	otherKey                        // another rule stands for the client
)

// half is where something is counted: 0, or 1 if a flag is set.
func (f flags) half(flag flags) int {
	if f&flag != 0 {
		return 1
	}
	return 0
}

// flagsOf looks at the other rules of a request. The first one that has a key stands
// for the client, and the first one that has just this key for the key.
func (s *stripe) flagsOf(v *engine.Verdict, from int, p *ruleIndex, pass bool) (f flags) {
	switch {
	case pass:
	case v.Results[from].Asked:
		f |= ruleDenied
	default:
		f |= ruleClosed
	}
	if !v.Allowed {
		f |= requestDenied
	}
	mine := v.Results[from].Rule
	for i := range v.Results {
		other := &v.Results[i]
		if other.Rule == mine {
			continue
		}
		keyed := s.index.Find(other.Rule).keyed
		if keyed && !p.keyed || keyed == p.keyed && i < from {
			f |= otherKey
		}
		if keyed && p.keyed && i < from && other.Key == v.Results[from].Key {
			f |= sameKey
		}
	}
	if !p.keyed && f&otherKey != 0 { // whose key it is
		f |= sameKey
	}
	return f
}

// denier returns the rule that denied the request of a client by another key of the request, such
// as its address, if no rule denied the key of the client.
func (s *stripe) denier(v *engine.Verdict, key string, f flags) int {
	if v.Allowed || f&sameKey != 0 {
		return noDenier
	}
	denier := noDenier
	for i := range v.Results {
		r := &v.Results[i]
		if r.Allowed || r.Shadow || !r.Asked {
			continue
		}
		if r.Key == key {
			return noDenier
		}
		if p := s.index.Find(r.Rule); denier == noDenier && (p.keyed || f&otherKey != 0) {
			denier = p.number
		}
	}
	return denier
}

// whoOf is the client that the results of a rule are about. A request may be several
// clients at once; then it is the first that was denied.
func whoOf(results []engine.Result) string {
	for i := range results {
		if !results[i].Allowed {
			return results[i].Key
		}
	}
	return results[0].Key
}

// sample copies what one rule says, whose results are from one on to another.
func (s *stripe) sample(req *rule.Request, v *engine.Verdict, from, to int, pass bool, power uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := v.Results[from:to]
	first := &results[0]
	p := s.index.Find(first.Rule)
	_, name := req.Client()
	tier := p.tier(name)
	limits := p.limits[tier]
	results = results[:min(len(results), len(limits), maxLimits)]
	f := s.flagsOf(v, from, p, pass)
	var room [128]byte
	key, denier := []byte(nil), noDenier
	if p.keyed {
		who := whoOf(v.Results[from:to])
		key, denier = unsafe.Slice(unsafe.StringData(who), len(who)), s.denier(v, who, f)
	} else {
		key = s.clientOf(room[:0], req, v)
		key = key[:min(len(key), weir.MaxKeyLen)]
	}
	at, size := len(s.buf), sampleHead+2*len(results)+len(key)
	if size > cap(s.buf)-at {
		s.dropped += 1 << power
		return
	}
	s.buf = s.buf[:at+size]
	record := s.buf[at:]
	binary.LittleEndian.PutUint16(record, uint16(p.number))
	record[2], record[3], record[4], record[5] = byte(tier), byte(power), byte(f), byte(len(results))
	binary.LittleEndian.PutUint16(record[6:], uint16(len(key)))
	binary.LittleEndian.PutUint16(record[8:], uint16(denier))
	record = record[sampleHead:]
	for i := range results {
		binary.LittleEndian.PutUint16(record, uint16(limits[i].usage(&results[i], v.Allowed)))
		record = record[2:]
	}
	copy(record, key)
	s.pace(at)
}

// usage is how much is in use after an allowed request. One that another rule has
// denied says nothing: it used nothing, and might not have come to that.
func (l *limit) usage(res *engine.Result, allowed bool) int {
	switch {
	case l.Compiled != res.Compiled || !res.Asked: // of an override, or an instance's share of it
		return limitOther
	case l.Algorithm() == weir.InFlight: // see flights; its period may be that of a rate
		return limitOther
	case !res.Allowed:
		return limitDenied
	case allowed:
		return int(archive.HistogramSlot(uint64(res.Used())))
	}
	return limitOther
}

// manySixteenths of a buffer are so many that they should be taken before the end of the
// second.
const manySixteenths = 2

// pace takes fewer samples from now on when one has gone beyond the middle of the
// buffer, or beyond another sixteenth of it: there is room for any burst. It says earlier
// that there are many.
func (s *stripe) pace(before int) {
	part := cap(s.buf) / 16
	before, now := before/part, len(s.buf)/part
	if before < manySixteenths && now >= manySixteenths {
		select {
		case s.many <- struct{}{}:
		default:
		}
	}
	if now >= 8 && now > before {
		s.power.Store(min(s.power.Load()+1, maxPower))
	}
}

// exchange takes what there is for empty buffers, the first of the same size, and takes more
// samples from now on if there were few.
func (s *stripe) exchange(other []byte, none []sampled) (full []byte, denied []sampled, dropped int64) {
	full, denied, dropped = s.buf, s.denials, s.dropped
	s.buf, s.denials, s.dropped = other[:0], none[:0], 0
	s.details.reset()
	s.chance.Store(rand.Uint64())
	if power := s.power.Load(); power > 0 && len(full) < cap(full)/8 {
		s.power.Store(power - 1)
	}
	return full, denied, dropped
}
