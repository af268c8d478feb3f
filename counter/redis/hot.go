package redis

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
)

// askHot runs the script of a hot list, unless what was asked is invalid.
func (s *Store) askHot(ctx context.Context, l *counter.HotList, invalid error, verb string, args ...string) *reader {
	if invalid != nil {
		return &reader{err: invalid}
	}
	head := []string{
		s.now(), verb, itoa(int64(counter.StepWidth(l.Window))), millis(slidingKept(l.Window) + counter.EventsKept),
		itoa(int64(s.maxMembers)), itoa(int64(s.roomFor())), itoa(l.Threshold), itoa(l.CoolBelow()),
	}
	return s.ask(ctx, hotScript, s.slidingKeys("h", l.Name, l.Window, "hot", "events"), append(head, args...))
}

// Hit implements counter.Store.
func (s *Store) Hit(ctx context.Context, l counter.HotList, items ...string) ([]counter.Heat, error) {
	r := s.askHot(ctx, &l, l.ValidateHit(items), "hit", items...)
	lines := r.list(r.answer, 0)
	heats := make([]counter.Heat, len(items))
	for i, item := range items {
		heats[i] = r.heat(item, lines, 3*i)
		heats[i].Turned = r.text(lines, 3*i+2) != ""
	}
	return result(heats, r)
}

// heat reads hits, and since when it is hot, if it is.
func (r *reader) heat(item string, lines []rueidis.RedisMessage, i int) counter.Heat {
	heat := counter.Heat{Item: item, Hits: r.number(lines, i)}
	if since := r.text(lines, i+1); since != "" {
		heat.Hot, heat.Since = true, timeOf(r.parse(since))
	}
	return heat
}

// Hot implements counter.Store.
func (s *Store) Hot(ctx context.Context, l counter.HotList, n int) ([]counter.Heat, error) {
	r := s.askHot(ctx, &l, l.ValidateHot(n), "hot", itoa(int64(n)))
	lines := r.list(r.answer, 0)
	heats := make([]counter.Heat, len(lines)/3)
	for i := range heats {
		heats[i] = r.heat(r.text(lines, 3*i), lines, 3*i+1)
	}
	return result(heats, r)
}

// Events implements counter.Store.
func (s *Store) Events(ctx context.Context, l counter.HotList, after int64) (counter.Events, error) {
	r := s.askHot(ctx, &l, l.Validate(), "events", itoa(after))
	now, last, lost := r.number(r.answer, 0), r.number(r.answer, 1), r.number(r.answer, 2)
	lines := r.list(r.answer, 3)
	news := counter.Events{Events: make([]counter.Event, len(lines)), Next: after, Missed: after < lost}
	for i := range lines {
		news.Events[i] = r.event(r.text(lines, i))
		news.Next = news.Events[i].ID
	}
	if after == counter.Latest {
		// Whatever happens next has the time for its number, or a higher one.
		news.Next = max(last, now-1)
	}
	return news, r.err
}

// event reads what a script has recorded.
func (r *reader) event(text string) counter.Event {
	part := strings.SplitN(text, " ", 5)
	if len(part) != 5 {
		r.fail(errAnswer)
		return counter.Event{}
	}
	return counter.Event{ID: r.parse(part[0]), Hot: part[1] == "hot", Hits: r.parse(part[2]), At: timeOf(r.parse(part[3])), Item: part[4]}
}
