package envoyrls

import (
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/envoyconfig"
	"github.com/weirhq/weir/rule"
)

// work is the memory for checking a request. It is reused for the next one.
type work struct {
	query     envoyconfig.Query
	keys      []byte
	items     []item // one for each descriptor
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
	node *envoyconfig.Node // nil if nothing applies
	key  string
	cost int64

	quota  bool // it denies only together with all others that are
	over   bool
	asked  bool // the store was
	failed bool // it could not be, and the limit is closed

	// What the limit says that speaks for the descriptor: of those that deny, the
	// one with the longest wait; if all allow, the one with the least remaining.
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
	w.items, w.replaced, w.demands, w.owners = w.items[:0], w.replaced[:0], w.demands[:0], w.owners[:0]
	w.keys = w.keys[:0]
	w.held, w.over, w.quotas, w.quotaOver = false, false, 0, false
	const most = 64 << 10
	if cap(w.keys) > most {
		w.keys = nil // one long request need not be paid for ever
	}
}

// fold puts the results of the engine to the descriptors that they belong to.
func (w *work) fold() {
	for i := range w.verdict.Results {
		r := &w.verdict.Results[i]
		it := &w.items[w.owners[r.Demand]]
		// A look asks for one unit, whatever the request asks for.
		over := !r.Allowed || w.held && r.Look && r.Asked && r.Remaining < it.cost
		it.add(r, over)
		it.next++
	}
}

// add takes a result of the descriptor into account.
func (it *item) add(r *engine.Result, over bool) {
	// A peek at a closed limit without an answer is denied, as a charge is.
	failed := !r.Asked && !r.Shadow && r.Rule.OnFailure == rule.Closed
	over = over || failed
	it.failed = it.failed || failed
	it.asked = it.asked || r.Asked
	if it.next == 0 || over && !it.over || over == it.over && it.isLouder(r) {
		it.speaker, it.remaining, it.reset, it.retry = it.next, r.Remaining, r.ResetAfter, r.RetryAfter
	}
	it.over = it.over || over
}

// isLouder is whether a result has more to say than the speaker, with which it agrees.
func (it *item) isLouder(r *engine.Result) bool {
	if it.over {
		return r.RetryAfter > it.retry
	}
	return r.Remaining < it.remaining
}

// hasError is whether a descriptor wants the call to fail.
func (w *work) hasError() bool {
	for i := range w.items {
		if it := &w.items[i]; it.failed && it.node.Failure == envoyconfig.FailError {
			return true
		}
	}
	return false
}

// conclude finds out what the descriptors say together.
func (w *work) conclude(globalQuota bool) {
	used := 0
	for i := range w.items {
		it := &w.items[i]
		switch {
		case it.node == nil || it.node.Unlimited || it.node.Shadow:
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
