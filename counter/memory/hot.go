package memory

import (
	"context"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// hot is a hot list: a sliding board of hits, those of its members that are hot, and
// what happened.
type hot struct {
	sliding
	threshold, cool int64
	since           map[string]weir.Micros // of the items that are hot
	events          []counter.Event
	ends            weir.Micros // when all this is forgotten
	last            int64       // ID of the last event
	lost            int64       // ID of the last event that is no longer kept
}

func (h *hot) weight() int { return h.sliding.weight() + len(h.since) + len(h.events) }

func (s *Store) findHot(l *counter.HotList, now weir.Micros) (*entry, *hot) {
	e, h := findBody[*hot](&s.room, hotIdent(l), now)
	if e != nil && now >= h.ends {
		s.room.remove(e)
		return nil, nil
	}
	return e, h
}

func hotIdent(l *counter.HotList) ident {
	return ident{kind: kindHot, span: l.Window, name: l.Name}
}

// keepHot is called when an item was hit, or an event recorded.
func (s *Store) keepHot(e *entry, l *counter.HotList, now weir.Micros) {
	h := e.body.(*hot)
	h.ends = h.reached(now) + micros(l.Window+counter.EventsKept) + 2*h.width
	s.room.keep(e, now, h.ends)
}

// settle finds out what has turned hot, and what has cooled, and reports whether
// anything has. Only the hit items can have turned hot, unless the threshold is new;
// and without a move of the window, or a drop of members, none has cooled.
func (h *hot) settle(l *counter.HotList, now weir.Micros, moved bool, hit []string) (turned map[string]bool, news bool) {
	before := h.last
	renewed := h.threshold != l.Threshold || h.cool != l.CoolBelow()
	h.threshold, h.cool = l.Threshold, l.CoolBelow()
	if moved || renewed {
		for _, r := range h.byAge() {
			if hits := h.sum[r.member]; hits < h.cool {
				delete(h.since, r.member)
				h.record(r.member, false, hits, now)
			}
		}
	}
	candidates := hit
	if renewed {
		candidates = nil
		for _, r := range h.sum.top(len(h.sum)) {
			candidates = append(candidates, r.member)
		}
	}
	turned = map[string]bool{}
	for _, item := range candidates {
		if _, known := h.since[item]; !known && h.sum[item] >= h.threshold {
			h.since[item] = now
			h.record(item, true, h.sum[item], now)
			turned[item] = true
		}
	}
	return turned, h.last != before
}

// byAge is the hot items in the order in which they turned hot.
func (h *hot) byAge() []row {
	rows := make([]row, 0, len(h.since))
	for item, since := range h.since {
		rows = append(rows, row{item, -int64(since)})
	}
	slices.SortFunc(rows, row.compare)
	return rows
}

func (h *hot) record(item string, turned bool, hits int64, now weir.Micros) {
	h.last = max(h.last+1, int64(now))
	h.events = append(h.events, counter.Event{ID: h.last, Item: item, Hot: turned, Hits: hits, At: now.Time()})
	if n := len(h.events) - counter.MaxEvents; n > 0 {
		h.lost = h.events[n-1].ID
		h.events = append(h.events[:0], h.events[n:]...)
	}
}

func (h *hot) heat(item string) counter.Heat {
	heat := counter.Heat{Item: item, Hits: h.sum[item]}
	if since, ok := h.since[item]; ok {
		heat.Hot, heat.Since = true, since.Time()
	}
	return heat
}

// Hit implements counter.Store.
func (s *Store) Hit(ctx context.Context, l counter.HotList, items ...string) ([]counter.Heat, error) {
	now, err := s.lock(ctx, l.ValidateHit(items))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	e, h := s.findHot(&l, now)
	if e == nil {
		h = &hot{sliding: *newSliding(l.Window, now), threshold: l.Threshold, cool: l.CoolBelow(), since: map[string]weir.Micros{}}
		e = &entry{id: hotIdent(&l), body: h}
	}
	if err := s.room.claimOne(e, now); err != nil {
		return nil, err
	}
	moved := h.advance(now)
	for _, item := range items {
		h.addScore(item, 1)
	}
	if h.trim(s.maxMembers, s.roomFor()) {
		moved = true
	}
	turned, _ := h.settle(&l, now, moved, items)
	heats := make([]counter.Heat, len(items))
	for i, item := range items {
		heats[i] = h.heat(item)
		heats[i].Turned = turned[item]
		delete(turned, item)
	}
	s.keepHot(e, &l, now)
	return heats, nil
}

// current returns a list as it is now; an empty one if there is none.
func (s *Store) current(l *counter.HotList, now weir.Micros) *hot {
	e, h := s.findHot(l, now)
	if e == nil {
		return &hot{}
	}
	if _, news := h.settle(l, now, h.advance(now), nil); news {
		s.keepHot(e, l, now)
	} else {
		s.room.weigh(e)
	}
	return h
}

// Hot implements counter.Store.
func (s *Store) Hot(ctx context.Context, l counter.HotList, n int) ([]counter.Heat, error) {
	now, err := s.lock(ctx, l.ValidateHot(n))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	h := s.current(&l, now)
	hits := make(table, len(h.since))
	for item := range h.since {
		hits[item] = h.sum[item]
	}
	heats := make([]counter.Heat, 0, min(n, len(hits)))
	for _, r := range hits.top(n) {
		heats = append(heats, h.heat(r.member))
	}
	return heats, nil
}

// Events implements counter.Store.
func (s *Store) Events(ctx context.Context, l counter.HotList, after int64) (counter.Events, error) {
	now, err := s.lock(ctx, l.Validate())
	if err != nil {
		return counter.Events{}, err
	}
	defer s.mu.Unlock()
	h := s.current(&l, now)
	news := counter.Events{Events: []counter.Event{}, Next: after, Missed: after < h.lost}
	for _, event := range h.events {
		if event.ID > after {
			news.Events = append(news.Events, event)
			news.Next = event.ID
		}
	}
	if after == counter.Latest {
		// Whatever happens next has the time for its number, or a higher one.
		news.Next = max(h.last, int64(now)-1)
	}
	return news, nil
}
