package check

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// Hiccup is the shortest stall of the machine after which a check may have failed.
	Hiccup = 20 * time.Millisecond

	// blink is for how long after it checks may still fail.
	blink = 300 * time.Millisecond
)

// Fault is a fault that was made.
type Fault struct {
	Span
	What string `json:"what"`
}

// Loss is a time in which the store may have lost what it knew: charges of before count no
// more after it. Meanwhile there may be two masters.
type Loss struct {
	Span
	Lives int            // how many masters came to serve, each with less than all charges; at least 1
	Has   func(int) bool // whether it is about keys of a slot; nil is all
}

// Timeline is what is known besides the answers. Its methods may be called at any time.
type Timeline struct {
	mu     sync.Mutex
	faults []*Fault
	losses []*Loss
	sick   spans         // the store did not answer, or was made not to
	stalls map[int]spans // an instance, or everybody, had to wait for the machine
	down   map[int]spans // instances, from before they were ended until they were ready
}

// NewTimeline is one on which nothing has happened.
func NewTimeline() *Timeline { return &Timeline{stalls: map[int]spans{}, down: map[int]spans{}} }

// Begin notes a fault that is about to be made. Its end is open.
func (t *Timeline) Begin(what string, at time.Duration) *Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &Fault{Span{at, Open}, what}
	t.faults = append(t.faults, f)
	return f
}

// End notes that the fault is over.
func (t *Timeline) End(f *Fault, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.To = at
}

// Lose notes a loss, from before the first charge can be missing. Its end may be open.
func (t *Timeline) Lose(l Loss) *Loss {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.losses = append(t.losses, &l)
	return &l
}

// EndLosses ends those that go on: there is one master, and all know it.
func (t *Timeline) EndLosses(at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.losses {
		l.To = min(l.To, at)
	}
}

// Losses are those that were noted.
func (t *Timeline) Losses() (losses []Loss) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.losses {
		losses = append(losses, *l)
	}
	return losses
}

// Recount says how many masters came to serve in a loss.
func (t *Timeline) Recount(l *Loss, lives int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.Lives = lives
}

// Sick notes that the store was not well.
func (t *Timeline) Sick(s Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sick = t.sick.add(s)
}

// Everybody stands for all instances instead of a single one.
const Everybody = -1

// Stalled notes that an instance, or everybody, had to wait for the machine.
func (t *Timeline) Stalled(who int, s Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stalls[who] = t.stalls[who].add(s)
}

// Down notes that an instance is not there.
func (t *Timeline) Down(instance int, s Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down[instance] = t.down[instance].add(s)
}

// Ready notes that the instance is there again.
func (t *Timeline) Ready(instance int, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	down := t.down[instance]
	down[len(down)-1].To = at
}

func (t *Timeline) isDown(instance int, s Span) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.down[instance], s.meets)
}

// stalled is for how much of a span an instance had to wait for the machine.
func (t *Timeline) stalled(instance int, s Span) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stalledLocked(instance, s)
}

// held is for how much of a span an instance had to wait for the machine, or the store was not well.
func (t *Timeline) held(instance int, s Span) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stalledLocked(instance, s) + t.sick.within(s)
}

func (t *Timeline) stalledLocked(instance int, s Span) time.Duration {
	var both spans // which may overlap
	for _, who := range []int{Everybody, instance} {
		for _, one := range t.stalls[who].meeting(s) {
			both = both.add(one)
		}
	}
	return both.within(s)
}

// Stalls is for how long everybody had to wait for the machine in all, and the longest that
// anybody had to at once.
func (t *Timeline) Stalls() (all, longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for who, stalls := range t.stalls {
		for _, s := range stalls {
			longest = max(longest, s.To-s.From)
			if who == Everybody {
				all += s.To - s.From
			}
		}
	}
	return all, longest
}

// wellFor is for how long, when a request was sent, the store had been well and the instance
// there; and whether it was the store that was the last not to be.
func (t *Timeline) wellFor(instance int, s Span) (since time.Duration, store bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ended, store := t.sick.lastBefore(s)
	if up, ok := t.down[instance].lastBefore(s); ok && up > ended {
		ended, store = up, false
	}
	return max(0, s.From-ended), store
}

// hiccup reports whether the machine made an instance wait for so long, at once just before a
// request or in all during it, that checks failed.
func (t *Timeline) hiccup(instance int, s Span) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stalledLocked(instance, s) >= Hiccup {
		return true
	}
	s.From -= blink
	long := func(one Span) bool { return one.To-one.From >= Hiccup }
	return slices.ContainsFunc(t.stalls[Everybody].meeting(s), long) || slices.ContainsFunc(t.stalls[instance].meeting(s), long)
}

// about is whether a key in the slot may have been lost.
func (l *Loss) about(slot int) bool { return slot != nowhere && (l.Has == nil || l.Has(slot)) }

// Lost reports whether charges of keys in the slot may have been lost in a span.
func (t *Timeline) Lost(s Span, slot int) bool { return t.lives(s, slot) > 1 }

// lives is how many masters may have served a key of the slot in a span, each on its own.
func (t *Timeline) lives(s Span, slot int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	lives := int64(1)
	for _, l := range t.losses {
		if l.meets(s) && l.about(slot) {
			lives += int64(l.Lives)
		}
	}
	return lives
}

// fresh are the instants within a span at which a loss ended that is about a slot: whatever
// was charged since then counts until the next.
func (t *Timeline) fresh(s Span, slot int) (instants []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.losses {
		if s.From < l.To && l.To < s.To && l.about(slot) {
			instants = append(instants, l.To)
		}
	}
	return instants
}

// Around are the faults that meet a span, or come close.
func (t *Timeline) Around(s Span) (faults []Fault) {
	const close = 5 * time.Second
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.faults {
		if f.meets(Span{s.From - close, s.To + close}) {
			faults = append(faults, *f)
		}
	}
	return faults
}

// Span is from one instant to another, both counted from the beginning of the run.
type Span struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Open is the end of what goes on.
const Open = time.Duration(math.MaxInt64)

func (s Span) meets(other Span) bool { return s.From <= other.To && other.From <= s.To }

// spans are in order and apart from one another.
type spans []Span

// add includes a span, and joins what then touches.
func (s spans) add(n Span) spans {
	at, _ := slices.BinarySearchFunc(s, n.From, func(one Span, from time.Duration) int {
		if one.To < from {
			return -1
		}
		return 1
	})
	end := at
	for end < len(s) && s[end].From <= n.To {
		n.From, n.To = min(n.From, s[end].From), max(n.To, s[end].To)
		end++
	}
	return slices.Replace(s, at, end, n)
}

// meeting are those that meet a span.
func (s spans) meeting(of Span) spans {
	first := len(s)
	for first > 0 && s[first-1].To >= of.From {
		first--
	}
	last := first
	for last < len(s) && s[last].From <= of.To {
		last++
	}
	return s[first:last]
}

// within is how much of a span they cover.
func (s spans) within(of Span) (covered time.Duration) {
	for _, one := range s.meeting(of) {
		covered += min(one.To, of.To) - max(one.From, of.From)
	}
	return covered
}

// lastBefore is when the last of them ended that began before the end of a span: no earlier
// than its beginning if they meet, and long ago if there is none.
func (s spans) lastBefore(of Span) (ended time.Duration, ok bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].From <= of.To {
			return min(s[i].To, of.To), true
		}
	}
	return 0, false
}
