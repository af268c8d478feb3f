package stats

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// A sampled denial has its own record among the samples, after the record of the rule:
//
//	2 bytes denialMark | 2 bytes rule | 1 byte tier | 1 byte flags | 1 byte method |
//	8 bytes Unix microseconds | 8 bytes cost | 1 byte length of path | 2 bytes length of key | path | key
//
// The path is the pattern of the rule; the path that the client sent is not recorded.
const (
	denialMark = math.MaxUint16 // marks a denial; as the number of a rule, it means the block list
	denialHead = 26

	maxPattern  = 255
	maxInstance = 100
)

// denialFlags are the flags of a denial.
type denialFlags uint8

const (
	denialShadow denialFlags = 1 << iota
	denialBlocked
	denialDegraded
)

// methods are the methods with their own number; the first two mean no method and any
// other method.
var methods = [...]string{"", archive.Other, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

func methodOf(name string) byte {
	if name == "" {
		return 0
	}
	for i, m := range methods[2:] {
		if strings.EqualFold(m, name) {
			return byte(i + 2)
		}
	}
	return 1
}

// details bounds how many denials are recorded until the collector empties the buffer: two
// for each of 64 groups of clients. A new seed changes the groups each time. So a client that
// is denied all the time costs little, and leaves room for the others.
type details struct {
	seed  maphash.Seed
	taken [64]uint8
}

const detailsEach = 2

func (d *details) reset() { *d = details{seed: maphash.MakeSeed()} }

// take reports whether to record a denial of this client.
func (d *details) take(key []byte) bool {
	n := &d.taken[maphash.Bytes(d.seed, key)%uint64(len(d.taken))]
	if *n == detailsEach {
		return false
	}
	*n++
	return true
}

// sampleDenial records a denial by the rule with the results from:to.
func (s *stripe) sampleDenial(req *rule.Request, v *engine.Verdict, from, to int, said engine.Outcome, clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var room [128]byte
	first := &v.Results[from]
	p := s.index.Find(first.Rule)
	key := room[:0]
	if p.keyed {
		key = append(key, whoOf(v.Results[from:to])...)
	} else {
		key = s.clientOf(key, req, v)
	}
	if !s.details.take(key) {
		return
	}
	flags := denialFlags(0)
	if first.Shadow {
		flags |= denialShadow
	}
	if said == engine.OutcomeDegradedDenied {
		flags |= denialDegraded
	}
	s.writeDenial(req, p.number, p.tier(req.Tier), flags, first.Cost, first.Rule.Pattern(req), key, clock)
}

// clientOf appends the client of a request that was denied by a rule with key global: the
// first key of another rule, or else the user, API key or address of the request.
func (s *stripe) clientOf(dst []byte, req *rule.Request, v *engine.Verdict) []byte {
	for i := range v.Results {
		if s.index.Find(v.Results[i].Rule).keyed {
			return append(dst, v.Results[i].Key...)
		}
	}
	if s.index.lists == nil {
		return dst
	}
	return s.index.lists.AppendClient(dst, req)
}

// sampleBlocked records a request of a client on the block list.
func (s *stripe) sampleBlocked(req *rule.Request, clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index.lists == nil {
		return
	}
	var room [128]byte
	key := s.index.lists.AppendBlocked(room[:0], req)
	if len(key) == 0 { // the lists have changed meanwhile
		key = s.index.lists.AppendClient(key, req)
	}
	if s.details.take(key) {
		s.writeDenial(req, denialMark, 0, denialBlocked, req.Cost, "", key, clock)
	}
}

func (s *stripe) writeDenial(req *rule.Request, number, tier int, flags denialFlags, cost int64, path string, key []byte, clock func() time.Time) {
	path, key = path[:min(len(path), maxPattern)], key[:min(len(key), weir.MaxKeyLen)]
	at, size := len(s.buf), denialHead+len(path)+len(key)
	if size > cap(s.buf)-at {
		return
	}
	s.buf = s.buf[:at+size]
	record := s.buf[at:]
	binary.LittleEndian.PutUint16(record, denialMark)
	binary.LittleEndian.PutUint16(record[2:], uint16(number))
	record[4], record[5], record[6] = byte(tier), byte(flags), methodOf(req.Method)
	binary.LittleEndian.PutUint64(record[7:], uint64(clock().UnixMicro()))
	binary.LittleEndian.PutUint64(record[15:], uint64(cost))
	record[23] = byte(len(path))
	binary.LittleEndian.PutUint16(record[24:], uint16(len(key)))
	copy(record[denialHead:], path)
	copy(record[denialHead+len(path):], key)
	s.pace(at)
}

// denials are the latest denials of each client and rule in the current ten seconds.
type denials struct {
	of   map[string]*recent // by rule and key
	name []byte             // buffer for a lookup
}

// recent holds the latest denials of one client and rule.
type recent struct {
	all  [archive.MaxDenialsKey]archive.Denial
	next int
	full bool
}

// maxRecent is the number of clients and rules at which forget drops most of them.
const maxRecent = 4 * archive.MaxDenials

// recent returns the denials of a client and rule, which the caller can add to.
func (d *denials) recent(rule string, key []byte) *recent {
	d.name = append(append(append(d.name[:0], rule...), 0), key...)
	if r := d.of[string(d.name)]; r != nil {
		return r
	}
	if d.of == nil {
		d.of = map[string]*recent{}
	}
	r := &recent{}
	d.of[string(d.name)] = r
	return r
}

// oldest returns the place for the next denial.
func (r *recent) oldest() *archive.Denial {
	place := &r.all[r.next]
	if r.next++; r.next == len(r.all) {
		r.next, r.full = 0, true
	}
	return place
}

// read adds the denial at the start of a buffer, and returns the rest of the buffer.
func (d *denials) read(x *index, buf []byte) []byte {
	number, flags := binary.LittleEndian.Uint16(buf[2:]), denialFlags(buf[5])
	one := archive.Denial{
		At: archive.Instant(binary.LittleEndian.Uint64(buf[7:])), Cost: int64(binary.LittleEndian.Uint64(buf[15:])), Method: methods[buf[6]],
		Shadow: flags&denialShadow != 0, Blocked: flags&denialBlocked != 0, Degraded: flags&denialDegraded != 0,
	}
	if number != denialMark {
		p := x.All[number]
		one.Rule, one.Tier = p.id, p.lines[buf[4]].Tier
	}
	path, rest := cut(buf[denialHead:], int(buf[23]))
	key, rest := cut(rest, int(binary.LittleEndian.Uint16(buf[24:])))
	if len(d.of) >= maxRecent {
		d.forget()
	}
	place := d.recent(one.Rule, key).oldest()
	one.Key, one.Path = reuse(place.Key, key), reuse(place.Path, path)
	*place = one
	return rest
}

func cut(buf []byte, n int) (head, rest []byte) { return buf[:n], buf[n:] }

// reuse returns the text as a string. It allocates nothing if the text is the same as
// before, which is the usual case.
func reuse(before string, text []byte) string {
	if before == string(text) {
		return before
	}
	return string(text)
}

// forget keeps as many denials as a frame does, and drops the others.
func (d *denials) forget() {
	f := archive.Frame{Denials: d.list("")}
	f.Trim()
	d.of = nil
	for _, one := range slices.Backward(f.Denials) { // the oldest first
		*d.recent(one.Rule, []byte(one.Key)).oldest() = one
	}
}

// list returns all denials in the order of a frame.
func (d *denials) list(instance string) []archive.Denial {
	var all []archive.Denial
	for _, r := range d.of {
		n := r.next
		if r.full {
			n = len(r.all)
		}
		all = append(all, r.all[:n]...)
	}
	for i := range all {
		all[i].Instance = instance[:min(len(instance), maxInstance)]
	}
	archive.SortDenials(all)
	return all
}
