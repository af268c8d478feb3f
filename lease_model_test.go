package weir_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// An exhaustive model of leases: holders, a process that asks exactly, a network, and the real arithmetic
// of the store. Everything that can happen next is tried at every point, and each state is visited once. What can
// happen need not: so a message or an answer that is lost is one that never arrives, and a holder that dies is one that
// does nothing any more.
type leaseModel struct {
	name     string
	limit    *weir.Compiled
	holders  int
	messages int    // that each holder may send
	copies   int8   // of each message that may arrive
	terms    []int8 // of the messages of a holder, in turns; 2
	horizon  int8   // the last instant; 5
	debts    int8   // units that each holder may spend beyond what it may
	back     int8   // by how much the store's clock may step back, once
	resets   int8   // of the key
	without  rule   // that is broken

	seed    maphash.Seed
	seen    hashes
	trace   []leaseStep
	wrong   string
	most    int64 // that was admitted in a window
	account weir.Account
	ops     [1]weir.LeaseOp
	answers []weir.LeaseAnswer
	events  map[string]int
}

// rule is what holders and stores keep to, so that nothing is exceeded.
type rule string

const (
	onlyTheNewestAnswer  rule = "only the answer to the newest message counts"
	keepsWhatIsKept      rule = "the store never takes back what a message keeps"
	stopsBeforeGivingUp  rule = "who gives up units stops spending them before"
	chargedAtExpiry      rule = "what was not reported at expiry is charged"
	expiredIsOver        rule = "that charge is no credit, and a late message is told to drop"
	remembered           rule = "leases that are over are remembered for one term more"
	neverEarlier         rule = "no message makes an expiry earlier"
	onlyNewerMessages    rule = "the store carries out no message that was overtaken"
	deadlineFromSending  rule = "the holder counts from sending"
	decisionsLeaveIt     rule = "decisions leave what is on lease"
	resetKeepsIt         rule = "a reset clears the usage, and not what is on lease"
	chargedInTheSameStep rule = "what is reported is charged in the same step"
)

type leaseStep struct {
	what       string
	now, who   int8
	a, b, c, d int8
}

// leaseWorld is everything at one instant. It has no pointers, so a copy is one assignment.
type leaseWorld struct {
	now, back, resets int8
	state             weir.State
	tail              [8]int64
	words             int8
	leases            [5]weir.Lease
	count             int8
	out               int64
	first             weir.Micros

	holders  [2]leaseHolder
	messages [6]leaseMessage
	answers  [6]leaseReply
	admitted [8]int8 // by instant
}

type leaseHolder struct {
	id, seq, sent  int8 // of its lease, of the newest message, and how many messages it sent
	spent, charged int8
	may            int8 // it spends up to so many
	deadline       int8
	debts          int8
	known, until   [4]int8 // by lease: units that were charged, and when that may be forgotten
}

// leaseMessage is a message under way, if it has copies.
type leaseMessage struct {
	copies, who, id, seq, at, term   int8
	spent, charged, keep, want, cost int8
}

// leaseReply is an answer under way, if it has a seq.
type leaseReply struct {
	seq, who, id, granted, charged, at, term int8
	drop                                     bool
}

// hashes is a set of numbers other than 0, which takes less room and time than a map.
type hashes struct {
	slots []uint64
	count int
}

// add reports whether a number is new.
func (s *hashes) add(h uint64) bool {
	if 4*s.count >= 3*len(s.slots) {
		old := s.slots
		s.slots, s.count = make([]uint64, max(1<<16, 2*len(old))), 0
		for _, h := range old {
			if h != 0 {
				s.add(h)
			}
		}
	}
	for i := h; ; i++ {
		switch slot := &s.slots[i&uint64(len(s.slots)-1)]; *slot {
		case h:
			return false
		case 0:
			*slot = h
			s.count++
			return true
		}
	}
}

func (m *leaseModel) run() {
	m.seed, m.events = maphash.MakeSeed(), map[string]int{}
	if m.terms == nil {
		m.terms = []int8{2}
	}
	if m.horizon == 0 {
		m.horizon = 5
	}
	m.explore(&leaseWorld{})
}

// inWindows reports whether units are counted by window.
func (m *leaseModel) inWindows() bool { return m.limit.Algorithm() == weir.FixedWindow && m.back == 0 }

// bound is how many units may be admitted in a window, or in a period.
func (m *leaseModel) bound() int64 {
	if m.inWindows() {
		return m.limit.Limit().N
	}
	return m.limit.Bound(1)
}

func (m *leaseModel) history() string {
	var b strings.Builder
	for _, s := range m.trace {
		fmt.Fprintf(&b, "\n  at %d: holder %d: %s %d %d %d %d", s.now, s.who, s.what, s.a, s.b, s.c, s.d)
	}
	return b.String()
}

func (m *leaseModel) fail(format string, args ...any) {
	if m.wrong == "" {
		m.wrong = fmt.Sprintf(format, args...) + m.history()
	}
}

func (m *leaseModel) explore(w *leaseWorld) {
	if m.wrong != "" {
		return
	}
	m.forget(w)
	if !m.seen.add(m.hash(w)) {
		return
	}
	m.check(w)
	if w.now < m.horizon {
		m.try(w, leaseStep{what: "a microsecond passes"}, m.pass)
	}
	m.try(w, leaseStep{what: "takes exactly"}, m.take)
	if w.resets < m.resets {
		m.try(w, leaseStep{what: "resets"}, m.reset)
	}
	if m.back > 0 && w.back == 0 {
		m.try(w, leaseStep{what: "the store's clock steps back"}, func(c *leaseWorld) { c.back = m.back })
	}
	for i := range w.messages {
		if w.messages[i].copies > 0 {
			m.try(w, leaseStep{what: "arrives: message", who: w.messages[i].who, a: w.messages[i].id, b: w.messages[i].seq}, func(c *leaseWorld) { m.arrive(c, i) })
		}
	}
	for i := range w.answers {
		if a := &w.answers[i]; a.seq > 0 {
			m.try(w, leaseStep{what: "hears: seq, granted, charged", who: a.who, a: a.seq, b: a.granted, c: a.charged}, func(c *leaseWorld) { m.hear(c, i) })
		}
	}
	for who := range int8(m.holders) {
		h := &w.holders[who]
		if w.now < h.deadline && h.spent < h.may {
			m.try(w, leaseStep{what: "spends", who: who, a: h.spent + 1}, func(c *leaseWorld) {
				c.holders[who].spent++
				m.admit(c)
			})
		}
		if h.debts < m.debts && h.seq > 0 {
			m.try(w, leaseStep{what: "settles", who: who, a: h.spent + 1}, func(c *leaseWorld) {
				c.holders[who].spent++
				c.holders[who].debts++
			})
		}
		if int(h.sent) < m.messages {
			for keep := min(h.spent, h.may); keep <= h.may; keep++ {
				m.try(w, leaseStep{what: "sends: spent, keep, want, cost", who: who, a: h.spent, b: keep}, func(c *leaseWorld) { m.send(c, who, keep, 0, 0) })
				m.try(w, leaseStep{what: "sends: spent, keep, want, cost", who: who, a: h.spent, b: keep, c: 9}, func(c *leaseWorld) { m.send(c, who, keep, 9, 0) })
				m.try(w, leaseStep{what: "sends: spent, keep, want, cost", who: who, a: h.spent, b: keep, c: 9, d: 1}, func(c *leaseWorld) { m.send(c, who, keep, 9, 1) })
			}
		}
	}
}

// try explores what comes of a step.
func (m *leaseModel) try(w *leaseWorld, s leaseStep, do func(*leaseWorld)) {
	if m.wrong != "" {
		return
	}
	c := *w
	s.now = w.now
	m.trace = append(m.trace, s)
	do(&c)
	m.explore(&c)
	m.trace = m.trace[:len(m.trace)-1]
}

// forget removes what has no consequences any more, so that worlds become equal.
func (m *leaseModel) forget(w *leaseWorld) {
	if m.without != "" {
		return
	}
	var waiting [2][4]bool // for messages of a lease
	for i := range w.messages {
		s := &w.messages[i]
		if s.copies == 0 {
			continue
		}
		if s.cost == 0 && m.back == 0 && m.isVain(w, s) {
			*s = leaseMessage{}
			continue
		}
		waiting[s.who][s.id] = true
		if s.at+s.term <= w.now {
			s.at = -s.term
		}
	}
	for who := range m.holders {
		h := &w.holders[who]
		last := int(h.sent) == m.messages
		for i := range w.answers {
			r := &w.answers[i]
			if r.seq == 0 || int(r.who) != who {
				continue
			}
			if r.at+r.term <= w.now {
				r.at = -r.term
			}
			if last {
				r.charged = 0
			}
			if last && r.at < 0 {
				*r = leaseReply{}
			}
			waiting[who][h.id] = waiting[who][h.id] || last && r.seq > 0
		}
		if h.deadline <= w.now {
			h.deadline = 0
		}
		if !last {
			continue
		}
		h.charged, h.debts = 0, m.debts
		if h.deadline == 0 && !waiting[who][h.id] {
			h.spent, h.may = 0, 0
		}
		for id := range h.known {
			if !waiting[who][id] {
				h.known[id], h.until[id] = 0, 0
			}
		}
	}
}

// isVain reports whether the store knows a newer message as long as the model goes on.
func (m *leaseModel) isVain(w *leaseWorld, s *leaseMessage) bool {
	for _, l := range w.leases[:w.count] {
		if l.ID == leaseID(s.who, s.id) {
			return l.Seq >= int64(s.seq) && l.Expires+l.Term > weir.Micros(m.horizon)
		}
	}
	return false
}

// open returns the account, brought to now.
func (m *leaseModel) open(w *leaseWorld) (*weir.Account, weir.Micros) {
	a, now := &m.account, weir.Micros(w.now-w.back)
	a.State, a.Out, a.First = w.state, w.out, w.first
	a.Tail = append(a.Tail[:0], w.tail[:w.words]...)
	a.Leases = append(a.Leases[:0], w.leases[:w.count]...)
	if m.without == chargedAtExpiry {
		for i := range a.Leases {
			if l := &a.Leases[i]; l.Expires <= now {
				a.Out -= l.Granted - min(l.Granted, l.Spent)
				l.Granted = min(l.Granted, l.Spent)
			}
		}
	}
	a.Expire(m.limit, now)
	if m.without == remembered {
		a.Leases = slices.DeleteFunc(a.Leases, func(l weir.Lease) bool { return l.Term == 0 })
	}
	return a, now
}

// keep puts the account back, without a state that counts no more, which stores drop.
func (m *leaseModel) keep(w *leaseWorld, a *weir.Account) {
	if a.State.Fresh <= weir.Micros(w.now-w.back) && w.back == m.back {
		a.Record = weir.Record{Tail: a.Tail[:0]}
	}
	if len(a.Tail) > len(w.tail) || len(a.Leases) > len(w.leases) {
		panic("the model is too small for its account")
	}
	w.state, w.out, w.first = a.State, a.Out, a.First
	w.tail, w.leases = [len(w.tail)]int64{}, [len(w.leases)]weir.Lease{}
	w.words, w.count = int8(copy(w.tail[:], a.Tail)), int8(copy(w.leases[:], a.Leases))
	for _, l := range a.Leases {
		known := &w.holders[l.ID[0]-1].known[l.ID[1]]
		*known = max(*known, int8(l.Spent))
	}
}

func (m *leaseModel) pass(w *leaseWorld) {
	w.now++
	for who := range w.holders {
		h := &w.holders[who]
		for id, until := range h.until {
			if until <= w.now {
				h.known[id], h.until[id] = 0, 0
			}
		}
	}
}

func (m *leaseModel) take(w *leaseWorld) {
	a, now := m.open(w)
	op := weir.Op{Key: "k", Limit: m.limit, Cost: 1}
	charge := []weir.Pending{{Op: &op, Prev: a.State, Tail: a.Tail, Leased: a.Out}}
	if m.without == decisionsLeaveIt {
		charge[0].Leased = 0
	}
	d := weir.DecideAll(nil, now, charge)[0]
	a.Keep(m.limit, charge[0].Next)
	m.keep(w, a)
	if d.Allowed {
		m.admit(w)
	}
}

func (m *leaseModel) reset(w *leaseWorld) {
	a, _ := m.open(w)
	a.Record = weir.Record{Tail: a.Tail[:0]}
	if m.without == resetKeepsIt {
		a.Leases, a.Out = a.Leases[:0], 0
	}
	m.keep(w, a)
	w.admitted = [len(w.admitted)]int8{}
	w.resets++
}

func (m *leaseModel) send(w *leaseWorld, who, keep, want, cost int8) {
	h := &w.holders[who]
	term := m.terms[int(h.sent)%len(m.terms)]
	h.sent++
	h.seq++
	if m.without != stopsBeforeGivingUp {
		h.may = keep
	}
	for i := range w.answers { // they come too late
		if a := &w.answers[i]; a.who == who && m.without != onlyTheNewestAnswer {
			*a = leaseReply{}
		}
	}
	n := 0
	for _, s := range w.messages { // the others, in the order in which they were sent
		if s.copies > 0 {
			w.messages[n] = s
			n++
		}
	}
	clear(w.messages[n:])
	w.messages[n] = leaseMessage{copies: m.copies, who: who, id: h.id, seq: h.seq, at: w.now, term: term, spent: h.spent, charged: h.charged, keep: keep, want: want, cost: cost}
}

func leaseID(who, id int8) weir.LeaseID { return weir.LeaseID{byte(who) + 1, byte(id)} }

func (m *leaseModel) arrive(w *leaseWorld, i int) {
	p := &w.messages[i]
	p.copies--
	s, h := *p, &w.holders[p.who]
	if s.copies == 0 {
		*p = leaseMessage{}
	}
	a, now := m.open(w)
	op := weir.LeaseOp{
		Op: weir.Op{Key: "k", Limit: m.limit, Cost: int64(s.cost)}, ID: leaseID(s.who, s.id), Seq: int64(s.seq),
		Spent: int64(s.spent), Charged: int64(s.charged), Keep: int64(s.keep), Want: int64(s.want), Term: time.Duration(s.term) * time.Microsecond,
	}
	at := slices.IndexFunc(a.Leases, func(l weir.Lease) bool { return l.ID == op.ID })
	newer := at < 0 || a.Leases[at].Seq < op.Seq
	known := int64(max(h.known[s.id], s.charged))
	if at >= 0 {
		known = max(known, a.Leases[at].Spent)
	}
	if at >= 0 {
		switch l := &a.Leases[at]; {
		case m.without == onlyNewerMessages:
			l.Seq = 0
		case m.without == expiredIsOver && l.Term == 0:
			l.Term, l.Expires = weir.Micros(s.term), now.Add(op.Term)
		}
	}
	if m.without == keepsWhatIsKept {
		op.Keep = 0
	}
	record := a.Record
	before := m.used(record, now)
	m.ops[0] = op
	m.answers = weir.LeaseAll(m.answers[:0], now, []*weir.Account{a}, m.ops[:])
	d := &m.answers[0]
	if m.without == chargedInTheSameStep && s.cost == 0 {
		a.Record = record
	}
	if m.inWindows() && m.resets == 0 {
		charged := m.used(a.Record, now) - before
		if s.cost > 0 && d.Allowed {
			charged--
		}
		want := max(0, int64(s.spent)-known)
		if !newer {
			want = 0
		}
		if charged > want && w.now < h.until[s.id] {
			m.fail("%d units were charged, of %d that were spent %d had been", charged, s.spent, known)
		}
		if charged < want {
			m.fail("%d units were charged, of %d that were spent %d had been", charged, s.spent, known)
		}
	}
	if at := slices.IndexFunc(a.Leases, func(l weir.Lease) bool { return l.ID == op.ID }); at >= 0 {
		if l := &a.Leases[at]; newer && l.Granted > max(l.Spent, op.Keep) {
			m.events["granted"]++
			m.fits(a, now)
		}
	}
	if at := slices.IndexFunc(a.Leases, func(l weir.Lease) bool { return l.ID == op.ID }); at >= 0 && m.without == neverEarlier {
		a.Leases[at].Expires = now.Add(op.Term)
		a.First = min(a.First, now.Add(op.Term))
	}
	if newer && d.Drop {
		h.until[s.id] = max(h.until[s.id], w.now+s.term)
	} else if newer {
		h.until[s.id] = max(h.until[s.id], w.now+2*s.term)
	}
	m.keep(w, a)
	if s.cost > 0 && d.Allowed {
		m.admit(w)
	}
	if d.Drop {
		m.events["dropped"]++
	}
	if s.id != h.id || s.seq != h.seq && m.without != onlyTheNewestAnswer {
		return
	}
	if d.Charged > int64(h.spent) && !d.Drop {
		m.fail("%d units were charged, and %d spent", d.Charged, h.spent)
	}
	r := leaseReply{seq: s.seq, who: s.who, id: s.id, granted: int8(d.Granted), charged: int8(d.Charged), at: s.at, term: s.term, drop: d.Drop}
	if slices.Contains(w.answers[:], r) {
		return
	}
	for i := range w.answers {
		if w.answers[i].seq == 0 {
			w.answers[i] = r
			return
		}
	}
	panic("the model is too small for its answers")
}

// used is what a fixed window has counted.
func (m *leaseModel) used(r weir.Record, now weir.Micros) int64 {
	if r.State.Fresh <= now {
		return 0
	}
	return r.State.A
}

func (m *leaseModel) hear(w *leaseWorld, i int) {
	r := w.answers[i]
	w.answers[i] = leaseReply{}
	h := &w.holders[r.who]
	if r.drop {
		for i := range w.answers {
			if w.answers[i].who == r.who {
				w.answers[i] = leaseReply{}
			}
		}
		*h = leaseHolder{id: h.id + 1, sent: h.sent, debts: h.debts, known: h.known, until: h.until}
		return
	}
	h.may, h.charged = r.granted, r.charged
	h.deadline = r.at + r.term
	if m.without == deadlineFromSending {
		h.deadline = w.now + r.term
	}
}

// admit notes that a unit was admitted, and checks that these are not too many.
func (m *leaseModel) admit(w *leaseWorld) {
	w.admitted[w.now]++
	var sum int64
	for i := m.begin(w); i <= w.now; i++ {
		sum += int64(w.admitted[i])
	}
	m.most = max(m.most, sum)
	if most := m.bound(); sum > most {
		m.fail("%d units were admitted in a window, and %d is the most", sum, most)
	}
}

// begin is from where on it counts what was admitted.
func (m *leaseModel) begin(w *leaseWorld) int8 {
	period := int8(m.limit.Limit().Period.Microseconds())
	if m.inWindows() {
		return w.now - w.now%period
	}
	return max(0, w.now-period+1)
}

// check is the invariant.
func (m *leaseModel) check(w *leaseWorld) {
	a, now := m.open(w)
	var out int64
	for i := range a.Leases {
		l := &a.Leases[i]
		out += max(0, l.Granted-l.Spent)
		if l.Expires < a.First && l.Expires > now {
			m.fail("a lease expires at %d, and nothing is to do before %d", l.Expires, a.First)
		}
	}
	if out != a.Out {
		m.fail("%d units are on lease, and the sum is %d", out, a.Out)
	}
	for who := range w.holders {
		h := &w.holders[who]
		reach := int8(0) // in all, from now on
		if w.now < h.deadline {
			reach = h.may
		}
		for i := range w.answers {
			if r := &w.answers[i]; r.seq > 0 && int(r.who) == who && !r.drop && w.now < r.at+r.term {
				reach = max(reach, r.granted)
			}
		}
		if reach <= h.spent {
			continue
		}
		m.events["may spend"]++
		id := leaseID(int8(who), h.id)
		i := slices.IndexFunc(a.Leases, func(l weir.Lease) bool { return l.ID == id })
		if i < 0 || a.Leases[i].Term == 0 || a.Leases[i].Granted < int64(reach) {
			m.fail("holder %d may spend %d, and has spent %d, but of its leases the store knows %+v", who, reach, h.spent, a.Leases)
		}
	}
}

// fits checks that what was granted did fit.
func (m *leaseModel) fits(a *weir.Account, now weir.Micros) {
	free := (&weir.Op{Key: "k", Limit: m.limit}).Peek(a.State, a.Tail, now).Remaining
	if a.Out > free {
		m.fail("%d units were granted and are on lease, and only %d are free", a.Out, free)
	}
}

// hash is equal for states from which the same can follow. The time of the first thing to do is left out:
// it must only not be too late, which is checked.
func (m *leaseModel) hash(w *leaseWorld) uint64 {
	h := m.hashAs(w, 0)
	if m.holders == 2 { // which are alike
		h = min(h, m.hashAs(w, 1))
	}
	return h
}

func (m *leaseModel) hashAs(w *leaseWorld, first int8) uint64 {
	var buf [512]byte
	b := append(buf[:0], byte(w.now), byte(w.back), byte(w.resets), byte(w.state.Fresh), byte(w.state.A), byte(w.state.A>>8), byte(w.state.A>>16), byte(w.state.A>>24), byte(w.state.A>>21), byte(w.state.B), byte(w.state.B>>8), byte(w.state.B>>16), byte(w.state.B>>21), byte(w.state.B>>24))
	for _, word := range w.tail[:w.words] {
		b = append(b, byte(word), byte(word>>8), byte(word>>16), byte(word>>21), byte(word>>24))
	}
	for i := m.begin(w); i <= w.now; i++ {
		b = append(b, byte(w.admitted[i]))
	}
	for i := range int8(m.holders) {
		who := i ^ first
		h := &w.holders[who]
		b = append(b, byte(h.id), byte(h.seq), byte(h.sent), byte(h.spent), byte(h.charged), byte(h.may), byte(h.deadline), byte(h.debts), byte(h.known[0]), byte(h.known[1]), byte(h.known[2]), byte(h.known[3]), byte(h.until[0]), byte(h.until[1]), byte(h.until[2]), byte(h.until[3]))
		for id := int8(0); id <= h.id; id++ {
			for _, l := range w.leases[:w.count] {
				if l.ID == leaseID(who, id) {
					b = append(b, 'l', byte(id), byte(l.Seq), byte(l.Granted), byte(l.Spent), byte(l.Expires), byte(l.Term))
				}
			}
		}
		for i := range w.messages {
			if s := &w.messages[i]; s.copies > 0 && s.who == who {
				b = append(b, 'm', byte(s.copies), byte(s.id), byte(s.seq), byte(s.at), byte(s.term), byte(s.spent), byte(s.charged), byte(s.keep), byte(s.want), byte(s.cost))
			}
		}
		for i := range w.answers {
			if r := &w.answers[i]; r.seq > 0 && r.who == who {
				drop := byte(0)
				if r.drop {
					drop = 1
				}
				b = append(b, 'a', byte(r.seq), byte(r.id), byte(r.granted), byte(r.charged), byte(r.at), byte(r.term), drop)
			}
		}
	}
	return maphash.Bytes(m.seed, b)
}

// In every order of events, nothing is exceeded. The larger part takes long, so only a test without the race
// detector does it.
func TestLeaseModel(t *testing.T) {
	states := 0
	for _, m := range []leaseModel{
		{name: "one unit", limit: weir.MustCompile("fixed_window 1/3us"), holders: 1, messages: 3, copies: 2},
		{name: "two units", limit: weir.MustCompile("fixed_window 2/3us"), holders: 1, messages: 3, copies: 2, terms: []int8{2, 1}},
		{name: "three units", limit: weir.MustCompile("fixed_window 3/3us"), holders: 1, messages: 3, copies: 2},
		{name: "two holders of one unit", limit: weir.MustCompile("fixed_window 1/2us"), holders: 2, messages: 2, copies: 2, horizon: 4},
		{name: "two holders of two units", limit: weir.MustCompile("fixed_window 2/2us"), holders: 2, messages: 2, copies: 1, horizon: 4},
		{name: "settlements", limit: weir.MustCompile("fixed_window 2/3us"), holders: 1, messages: 3, copies: 1, debts: 1},
		{name: "resets", limit: weir.MustCompile("fixed_window 1/3us"), holders: 1, messages: 3, copies: 1, resets: 1},
		{name: "the clock steps back", limit: weir.MustCompile("fixed_window 1/3us"), holders: 1, messages: 3, copies: 1, back: 2},
		{name: "the clock of a log steps back", limit: weir.MustCompile("sliding_log 1/3us"), holders: 1, messages: 3, copies: 1, back: 2},
		{name: "sliding log", limit: weir.MustCompile("sliding_log 2/3us"), holders: 1, messages: 3, copies: 1},
		{name: "sliding window", limit: weir.MustCompile("sliding_window 2/3us"), holders: 1, messages: 3, copies: 1},
		{name: "sliding buckets", limit: weir.MustCompile("sliding_buckets 2/3us buckets 2"), holders: 1, messages: 3, copies: 1},
		{name: "token bucket", limit: weir.MustCompile("token_bucket 2/3us"), holders: 1, messages: 3, copies: 1},
	} {
		t.Run(m.name, func(t *testing.T) {
			if testkit.Race {
				m.messages, m.copies = m.messages-1, 1
			}
			m.run()
			if m.wrong != "" {
				t.Fatal(m.wrong)
			}
			t.Logf("%d states, %v", m.seen.count, m.events)
			states += m.seen.count
			if want := m.bound(); m.most != want || m.events["granted"] == 0 || m.events["may spend"] == 0 || m.events["dropped"] == 0 && !testkit.Race {
				t.Errorf("at most %d units were admitted in a window, want %d; events %v", m.most, want, m.events)
			}
		})
	}
	t.Logf("%d states", states)
}

// Without any one of the rules, something is exceeded, or charged twice, and the model says so.
func TestLeaseModelNeedsEachRule(t *testing.T) {
	for _, m := range []leaseModel{
		{without: onlyTheNewestAnswer},
		{without: keepsWhatIsKept},
		{without: stopsBeforeGivingUp},
		{without: chargedAtExpiry},
		{without: expiredIsOver},
		{without: remembered, copies: 2},
		{without: neverEarlier, terms: []int8{2, 1}},
		{without: onlyNewerMessages},
		{without: deadlineFromSending},
		{without: decisionsLeaveIt},
		{without: resetKeepsIt, resets: 1},
		{without: chargedInTheSameStep},
	} {
		t.Run(string(m.without), func(t *testing.T) {
			m.limit, m.holders, m.messages = weir.MustCompile("fixed_window 2/3us"), 1, 2
			m.copies = max(1, m.copies)
			m.run()
			t.Logf("%d states: %s", m.seen.count, m.wrong)
			if m.wrong == "" {
				t.Error("the model found nothing wrong")
			}
		})
	}
}
