package stats

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// sampled is a denial as a stripe has it. Its texts are those of the rules; only the key is
// copied, into memory that the stripe uses again, and the address, which is written as text later. The path is the pattern of the rule: the path
// that the client sent is not recorded.
type sampled struct {
	archive.Denial
	key     []byte
	address netip.Addr
}

const (
	maxPattern  = 255
	maxInstance = 100
)

// methods are those that are told apart.
var methods = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

func methodOf(name string) string {
	for _, m := range methods {
		if strings.EqualFold(m, name) {
			return m
		}
	}
	if name == "" {
		return ""
	}
	return archive.Other
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
	if s.details.take(key) {
		path := first.Rule.Pattern(req)
		_, tier := req.Client()
		s.record(key, req.IP, archive.Denial{
			At: archive.Instant(clock().UnixMicro()), Rule: p.id, Tier: p.lines[p.tier(tier)].Tier, Method: methodOf(req.Method),
			Path: path[:min(len(path), maxPattern)], Cost: first.Cost, Shadow: first.Shadow, Degraded: said == engine.OutcomeDegradedDenied,
			Crowded: slices.ContainsFunc(v.Results[from:to], func(r engine.Result) bool { return r.Crowded() }),
		})
	}
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

// sampleBlocked records a request that no rule has denied: its client is blocked, or unknown.
func (s *stripe) sampleBlocked(req *rule.Request, outcome engine.Outcome, clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index.lists == nil {
		return
	}
	var room [128]byte
	key := s.index.lists.AppendBlocked(room[:0], req)
	if len(key) == 0 { // it is on no list, or the lists have changed meanwhile
		key = s.index.lists.AppendClient(key, req)
	}
	if s.details.take(key) {
		s.record(key, req.IP, archive.Denial{At: archive.Instant(clock().UnixMicro()), Method: methodOf(req.Method), Cost: req.Cost,
			Blocked: outcome == engine.OutcomeBlocked, Unknown: outcome == unknownClient})
	}
}

func (s *stripe) record(key []byte, address netip.Addr, one archive.Denial) {
	n := len(s.denials)
	s.denials = slices.Grow(s.denials, 1)[:n+1]
	place := &s.denials[n]
	place.address = address
	place.Denial, place.key = one, append(place.key[:0], key[:min(len(key), weir.MaxKeyLen)]...)
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

// add adds a denial that a stripe has recorded.
func (d *denials) add(one *sampled) {
	if len(d.of) >= maxRecent {
		d.forget()
	}
	place := d.recent(one.Rule, one.key).oldest()
	one.Key = reuse(place.Key, one.key)
	var room [64]byte
	if one.address.IsValid() {
		one.Address = reuse(place.Address, one.address.Unmap().WithZone("").AppendTo(room[:0]))
	}
	*place = one.Denial
}

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
