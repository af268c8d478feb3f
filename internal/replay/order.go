package replay

// Bounds on what is held back until it is clear that nothing earlier comes.
const (
	maxHeld    = 1 << 16 // entries
	maxBatches = 256     // pieces of logs that they are part of
)

// order puts entries into the order of time that are out of it by no more than a
// bound. Servers write a line when a request ends, and many of them the time at
// which it began; so some disorder is usual.
type order struct {
	bound  int64
	newest int64

	// Most entries come in order. They are a queue; the others a heap.
	queue      []held
	first      int
	stragglers []straggler
	came       uint64

	reordered int64 // how many were put back into order
}

type straggler struct {
	held
	came uint64 // of two at the same time, the first comes first
}

func (o *order) len() int { return len(o.queue) - o.first + len(o.stragglers) }

func (o *order) push(h held) {
	at := h.entry.At
	o.newest = max(o.newest, at)
	if o.first == len(o.queue) || at >= o.queue[len(o.queue)-1].entry.At {
		o.shift()
		o.queue = append(o.queue, h)
		return
	}
	o.reordered++
	o.came++
	o.stragglers = append(o.stragglers, straggler{h, o.came})
	o.rise(len(o.stragglers) - 1)
}

// shift makes room at the end of the queue when half of it has gone.
func (o *order) shift() {
	if o.first > 0 && 2*o.first >= len(o.queue) && len(o.queue) == cap(o.queue) {
		n := copy(o.queue, o.queue[o.first:])
		clear(o.queue[n:])
		o.queue, o.first = o.queue[:n], 0
	}
}

// pop returns the earliest entry if nothing earlier is to be expected, or at once
// if that is forced.
func (o *order) pop(forced bool) (held, bool) {
	fromQueue := o.first < len(o.queue)
	if len(o.stragglers) > 0 && (!fromQueue || o.stragglers[0].entry.At < o.queue[o.first].entry.At) {
		fromQueue = false
	} else if !fromQueue {
		return held{}, false
	}
	if fromQueue {
		h := o.queue[o.first]
		if !forced && h.entry.At > o.newest-o.bound {
			return held{}, false
		}
		o.queue[o.first] = held{}
		o.first++
		if o.first == len(o.queue) {
			o.queue, o.first = o.queue[:0], 0
		}
		return h, true
	}
	if !forced && o.stragglers[0].entry.At > o.newest-o.bound {
		return held{}, false
	}
	return o.popStraggler(), true
}

func (o *order) popStraggler() held {
	h := o.stragglers[0].held
	last := len(o.stragglers) - 1
	o.stragglers[0] = o.stragglers[last]
	o.stragglers[last] = straggler{}
	o.stragglers = o.stragglers[:last]
	o.sink(0)
	return h
}

func (o *order) less(i, j int) bool {
	a, b := &o.stragglers[i], &o.stragglers[j]
	if a.entry.At != b.entry.At {
		return a.entry.At < b.entry.At
	}
	return a.came < b.came
}

func (o *order) rise(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !o.less(i, parent) {
			return
		}
		o.stragglers[i], o.stragglers[parent] = o.stragglers[parent], o.stragglers[i]
		i = parent
	}
}

func (o *order) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(o.stragglers); child++ {
			if o.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		o.stragglers[i], o.stragglers[least] = o.stragglers[least], o.stragglers[i]
		i = least
	}
}
