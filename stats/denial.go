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
	"github.com/weirhq/weir/stats/frame"
)

// A sampled denial has a record of its own among the samples, behind that of the rule:
//
//	2 bytes denialMark | 2 bytes rule | 1 byte tier | 1 byte flags | 1 byte method |
//	8 bytes Unix microseconds | 8 bytes cost | 1 byte length of path | 2 bytes length of key | path | key
//
// The path is the pattern of the rule; what the client has sent is not written down.
const (
	denialMark = math.MaxUint16 // no number of a rule, and in the place of one: the block list
	denialHead = 26

	maxPattern  = 255
	maxInstance = 100
)

// denialFlags are those of a denial.
type denialFlags uint8

const (
	denialShadow denialFlags = 1 << iota
	denialBlocked
	denialDegraded
)

// methods are those that are told apart; the first are none and all others.
var methods = [...]string{"", frame.Other, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

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

// details bounds how many denials are written down between two looks of the collector:
// two for each of some groups of clients, which are others each time. So a client that is
// denied all the time costs little, and leaves room for the others.
type details struct {
	seed  maphash.Seed
	taken [64]uint8
}

const detailsEach = 2

func (d *details) reset() { *d = details{seed: maphash.MakeSeed()} }

// take reports whether a denial of this client is to be written down.
func (d *details) take(key []byte) bool {
	n := &d.taken[maphash.Bytes(d.seed, key)%uint64(len(d.taken))]
	if *n == detailsEach {
		return false
	}
	*n++
	return true
}

// sampleDenial copies who was denied, by a rule whose results are from one on to another.
func (s *stripe) sampleDenial(req *rule.Request, v *engine.Verdict, from, to int, said engine.Outcome, clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var room [128]byte
	first := &v.Results[from]
	p := s.index.find(first.Rule)
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

// clientOf is whom a request is from that a rule has denied which counts everybody
// together: the first one that another rule tells apart, or whom the request names.
func (s *stripe) clientOf(dst []byte, req *rule.Request, v *engine.Verdict) []byte {
	for i := range v.Results {
		if s.index.find(v.Results[i].Rule).keyed {
			return append(dst, v.Results[i].Key...)
		}
	}
	if s.index.lists == nil {
		return dst
	}
	return s.index.lists.AppendClient(dst, req)
}

// sampleBlocked copies who is on the block list.
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

// denials are those of the ten seconds that are being counted: of each client and rule
// the latest ones.
type denials struct {
	of   map[string]*recent // by rule and key
	name []byte             // to look one up
}

// recent is the latest denials of one client and rule.
type recent struct {
	all  [frame.MaxDenialsKey]frame.Denial
	next int
	full bool
}

// maxRecent is how many clients and rules are remembered before most are forgotten.
const maxRecent = 4 * frame.MaxDenials

// recent returns what is remembered of a client and rule, to be added to.
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

// oldest is the place for the next denial.
func (r *recent) oldest() *frame.Denial {
	place := &r.all[r.next]
	if r.next++; r.next == len(r.all) {
		r.next, r.full = 0, true
	}
	return place
}

// read adds the denial that a buffer begins with, and returns the rest.
func (d *denials) read(x *index, buf []byte) []byte {
	number, flags := binary.LittleEndian.Uint16(buf[2:]), denialFlags(buf[5])
	one := frame.Denial{
		At: int64(binary.LittleEndian.Uint64(buf[7:])), Cost: int64(binary.LittleEndian.Uint64(buf[15:])), Method: methods[buf[6]],
		Shadow: flags&denialShadow != 0, Blocked: flags&denialBlocked != 0, Degraded: flags&denialDegraded != 0,
	}
	if number != denialMark {
		p := x.rules[number]
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

// reuse is a text that most often is the same as before.
func reuse(before string, text []byte) string {
	if before == string(text) {
		return before
	}
	return string(text)
}

// forget keeps as many as a frame does.
func (d *denials) forget() {
	f := frame.Frame{Denials: d.list("")}
	f.Trim()
	d.of = nil
	for _, one := range slices.Backward(f.Denials) { // the oldest first
		*d.recent(one.Rule, []byte(one.Key)).oldest() = one
	}
}

// list is all that are remembered, as a frame has them.
func (d *denials) list(instance string) []frame.Denial {
	var all []frame.Denial
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
	frame.SortDenials(all)
	return all
}
