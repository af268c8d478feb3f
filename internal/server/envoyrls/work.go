package envoyrls

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
	"unsafe"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
)

// work is the memory for checking a request. It is reused for the next one.
type work struct {
	query     envoyconfig.Query
	keys      []byte
	items     []item // one for each descriptor
	holds     []engine.NamedHold
	replaced  []string
	demands   []engine.Demand
	owners    []int // the items of the demands
	verdict   engine.Verdict
	held      bool // the request is denied anyway, so that demands only look
	over      bool // a descriptor denies the request
	quotas    int  // descriptors that are quotas
	quotaOver bool // all of them are used up
}

// item is what becomes of one descriptor.
type item struct {
	node   *envoyconfig.Node // nil if nothing applies
	key    string
	cost   int64
	always bool              // the hits tell what is done already
	hold   *engine.NamedHold // that begins or ends; nil if the hits are charged

	quota  bool // it denies only together with all others that are
	over   bool
	asked  bool // the store was
	failed bool // it could not be, and the limit is closed

	// What the limit says that speaks for the descriptor; see fold.
	speaker      int
	remaining    int64
	reset, retry time.Duration
	next         int // the limit whose result comes next
}

// isCounted is whether there is something to ask the engine for.
func (it *item) isCounted() bool { return it.node != nil && !it.node.Unlimited && !it.node.Denies() }

func (w *work) clear() {
	w.query.Clear()
	clear(w.items)
	clear(w.replaced)
	clear(w.demands)
	w.holds = w.holds[:0]
	w.items, w.replaced, w.demands, w.owners = w.items[:0], w.replaced[:0], w.demands[:0], w.owners[:0]
	w.keys = w.keys[:0]
	w.held, w.over, w.quotas, w.quotaOver = false, false, 0, false
	const most = 64 << 10
	if cap(w.keys) > most {
		w.keys = nil // one long request need not be paid for ever
	}
}

// fold puts the results of the engine to the descriptors that they belong to. Of those that deny,
// the one with the longest wait speaks for its descriptor, because a status has only one time; if
// all allow, the one with the least remaining.
func (w *work) fold() {
	for i := range w.verdict.Results {
		r := &w.verdict.Results[i]
		it := &w.items[w.owners[r.Demand]]
		// A peek at a closed limit without an answer is denied, as a charge is; and a look asks for
		// one unit, whatever the request asks for.
		failed := r.Closed() && !r.Shadow
		over := failed || !r.Allowed || w.held && r.Look && r.Asked && r.Remaining < it.cost
		speaks := r.Remaining < it.remaining
		if it.over {
			speaks = r.RetryAfter > it.retry
		}
		if it.next == 0 || over && !it.over || over == it.over && speaks {
			it.speaker, it.remaining, it.reset, it.retry = it.next, r.Remaining, r.ResetAfter, r.RetryAfter
		}
		it.over, it.failed, it.asked = it.over || over, it.failed || failed, it.asked || r.Asked
		it.next++
	}
}

// hasError is whether a descriptor wants the call to fail.
func (w *work) hasError() bool {
	return slices.ContainsFunc(w.items, func(it item) bool { return it.failed && it.node.Failure.IsError() })
}

// conclude finds out what the descriptors say together.
func (w *work) conclude(globalQuota bool) {
	used := 0
	for i := range w.items {
		it := &w.items[i]
		switch {
		case it.node == nil || it.node.Unlimited || it.node.Shadow || it.hold != nil && it.hold.Ends:
		case it.node.Quota || globalQuota:
			it.quota = true
			w.quotas++
			if it.over {
				used++
			}
		case it.over:
			w.over = true
		}
	}
	w.quotaOver = w.quotas > 0 && used == w.quotas
}

// errNoConfig has the code and the first words of envoyproxy/ratelimit.
var errNoConfig = status.Error(codes.Unknown, "no rate limit configuration loaded; weir's log says why")

// gather finds out what a request demands.
func (s *Service) gather(w *work, req *pb.RateLimitRequest) error {
	descriptors := req.GetDescriptors()
	switch {
	case req.GetDomain() == "":
		return status.Error(codes.InvalidArgument, "envoyrls: the request has no domain; set domain in Envoy's rate limit filter")
	case len(descriptors) == 0:
		return status.Error(codes.InvalidArgument, "envoyrls: the request has no descriptors; Envoy asks only if an action makes one")
	case len(descriptors) > MaxDescriptors:
		return status.Errorf(codes.InvalidArgument, "envoyrls: the request has %d descriptors; the maximum is %d", len(descriptors), MaxDescriptors)
	}
	config := s.options.Config()
	if config == nil {
		return errNoConfig
	}
	domain := config.Domain(req.GetDomain())
	for _, d := range descriptors {
		it, err := w.look(domain, d)
		if err != nil {
			return err
		}
		if it.cost = costOf(req, d); it.isCounted() && it.node.Hold != nil {
			w.hold(&it, d)
		}
		w.items = append(w.items, it)
	}
	w.replace()
	return s.demand(w)
}

// look finds the node of a descriptor, and who is counted.
func (w *work) look(domain *envoyconfig.Domain, d *common.RateLimitDescriptor) (it item, err error) {
	if len(d.GetEntries()) > MaxEntries {
		return it, status.Errorf(codes.InvalidArgument, "envoyrls: a descriptor has %d entries; the maximum is %d", len(d.GetEntries()), MaxEntries)
	}
	w.query.Clear()
	for _, e := range d.GetEntries() {
		if len(e.GetKey()) > MaxText || len(e.GetValue()) > MaxText {
			return it, status.Errorf(codes.InvalidArgument, "envoyrls: an entry of a descriptor has more than %d bytes", MaxText)
		}
		w.query.Entries = append(w.query.Entries, envoyconfig.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	switch o := d.GetLimit(); {
	case domain == nil:
		return it, nil
	case o != nil:
		it.node, err = domain.Override(&w.query, o.GetRequestsPerUnit(), envoyconfig.Unit(max(0, min(o.GetUnit(), 255))), o.GetUnitMultiplier().GetValue())
		if err != nil {
			return it, status.Error(codes.InvalidArgument, err.Error())
		}
	default:
		it.node = domain.Find(&w.query)
	}
	if it.node == nil {
		return it, nil
	}
	it.always = it.node.Always
	w.replaced = append(w.replaced, it.node.Replaces...)
	if it.isCounted() {
		it.key = w.key(domain)
	}
	return it, nil
}

// key names the counter. The bytes never change as long as the work is not cleared: when
// the buffer grows, the old one stays for who still points to it.
func (w *work) key(domain *envoyconfig.Domain) string {
	begin := len(w.keys)
	w.keys = domain.AppendKey(w.keys, w.query.Entries)
	key := w.keys[begin:]
	return unsafe.String(unsafe.SliceData(key), len(key))
}

// hold finds out whether the hits of a descriptor are of a request that begins or of one that ends. Without an
// id, what is reserved and what is used are both charged, so that nobody gets more by leaving it out.
func (w *work) hold(it *item, d *common.RateLimitDescriptor) {
	h := it.node.Hold
	begins := h.Begins(&w.query, it.cost, d.GetHitsAddend() != nil)
	if begins && h.Reserve > 0 {
		it.cost = h.Reserve
	}
	if it.always = !begins; w.query.ID == "" {
		return
	}
	if len(w.holds) == cap(w.holds) { // demands point to those that are there
		w.holds = make([]engine.NamedHold, 0, max(4, 2*cap(w.holds)))
	}
	w.holds = append(w.holds, engine.NamedHold{Name: w.holdName(it.key), TTL: h.TTL, Ends: !begins})
	it.hold = &w.holds[len(w.holds)-1]
}

// holdName is the name of the query's hold on a counter: who sends the id of another counter's hold
// cannot end it.
func (w *work) holdName(key string) (name weir.HoldID) {
	begin := len(w.keys)
	w.keys = binary.BigEndian.AppendUint32(append(w.keys, "weir:envoy:hold:"...), uint32(len(key)))
	w.keys = append(append(w.keys, key...), w.query.ID...)
	sum := sha256.Sum256(w.keys[begin:])
	w.keys = w.keys[:begin]
	copy(name[:], sum[:])
	return name
}

// costOf is how much a descriptor is charged. Its own number goes before that of the
// request; there, none means one. Negative hits would give something back, which is not
// done: then nothing is charged.
func costOf(req *pb.RateLimitRequest, d *common.RateLimitDescriptor) int64 {
	switch hits := d.GetHitsAddend(); {
	case d.GetIsNegativeHits():
		return 0
	case hits != nil:
		return int64(min(hits.GetValue(), weir.MaxUnits))
	}
	return int64(max(1, req.GetHitsAddend()))
}

// replace drops the limits that others stand in for.
func (w *work) replace() {
	if len(w.replaced) == 0 {
		return
	}
	for i := range w.items {
		if it := &w.items[i]; it.node != nil && !it.node.Unlimited && it.node.IsReplaced(w.replaced) {
			it.node = nil
		}
	}
}

// demand lists what to ask of the engine.
func (s *Service) demand(w *work) error {
	limits, denied := 0, false
	for i := range w.items {
		it := &w.items[i]
		if it.node != nil && it.node.Denies() {
			it.deny()
			denied = denied || !s.watches(it.node)
			continue
		}
		if !it.isCounted() {
			continue
		}
		terms := s.terms(it.node)
		limits += len(terms.Limits)
		w.owners = append(w.owners, i)
		w.demands = append(w.demands, engine.Demand{Rule: terms.Rule, Limits: terms.Limits, Key: it.key, Cost: it.cost, Always: it.always, Hold: it.hold})
	}
	if limits > weir.MaxOps {
		return status.Errorf(codes.InvalidArgument, "envoyrls: %d limits apply to the request; the maximum is %d; send fewer descriptors", limits, weir.MaxOps)
	}
	if w.held = denied && !s.options.CountDenied; w.held {
		for i := range w.demands {
			if d := &w.demands[i]; !d.Always { // nor does it end a hold
				d.Cost = 0
			}
		}
	}
	return nil
}

// watches is whether a node has no say by itself.
func (s *Service) watches(n *envoyconfig.Node) bool {
	return n.Shadow || n.Quota || s.options.GlobalShadow || s.options.GlobalQuota
}

// deny answers for a node with a limit of 0, of which there is nothing to be counted.
func (it *item) deny() {
	it.over, it.asked = true, true
	for i := range it.node.Limits {
		if it.node.Limits[i].N == 0 {
			it.speaker = i
		}
	}
}
