package redis

import (
	"context"
	"strconv"
	"strings"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

// askHot runs the script of a hot list, unless what was asked is invalid.
func (s *Store) askHot(ctx context.Context, l *counter.HotList, invalid error, verb string, args ...string) *redislink.Answer {
	if invalid != nil {
		return s.conn.Failed(invalid)
	}
	head := []string{
		s.now(), verb, itoa(int64(counter.StepWidth(l.Window))), millis(slidingKept(l.Window) + counter.EventsKept),
		itoa(int64(s.maxMembers)), itoa(int64(s.roomFor())), itoa(l.Threshold), itoa(l.CoolBelow()),
	}
	return s.call(ctx, hotScript, s.slidingKeys("h", l.Name, l.Window, "hot", "events"), append(head, args...))
}

// Hit implements counter.Store.
func (s *Store) Hit(ctx context.Context, l counter.HotList, items ...string) ([]counter.Heat, error) {
	a := s.askHot(ctx, &l, l.ValidateHit(items), "hit", items...)
	lines := a.List()
	heats := make([]counter.Heat, len(items))
	for i, item := range items {
		heats[i] = heat(item, lines)
		heats[i].Turned = lines.Text() != ""
	}
	return redislink.Result(heats, a)
}

// heat reads hits, and since when it is hot, if it is.
func heat(item string, a *redislink.Answer) counter.Heat {
	heat := counter.Heat{Item: item, Hits: a.Int()}
	if since := a.Text(); since != "" {
		heat.Hot, heat.Since = true, timeOf(parse(since, a))
	}
	return heat
}

func parse(text string, a *redislink.Answer) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	a.Must(err == nil)
	return n
}

// Hot implements counter.Store.
func (s *Store) Hot(ctx context.Context, l counter.HotList, n int) ([]counter.Heat, error) {
	a := s.askHot(ctx, &l, l.ValidateHot(n), "hot", itoa(int64(n)))
	lines := a.List()
	heats := make([]counter.Heat, lines.Len()/3)
	for i := range heats {
		heats[i] = heat(lines.Text(), lines)
	}
	return redislink.Result(heats, a)
}

// Events implements counter.Store.
func (s *Store) Events(ctx context.Context, l counter.HotList, after int64) (counter.Events, error) {
	a := s.askHot(ctx, &l, l.Validate(), "events", itoa(after))
	now, last, lost, lines := a.Int(), a.Int(), a.Int(), a.List()
	news := counter.Events{Events: make([]counter.Event, lines.Len()), Next: after, Missed: after < lost}
	for i := range news.Events {
		news.Events[i] = event(lines)
		news.Next = news.Events[i].ID
	}
	if after == counter.Latest {
		// Whatever happens next has the time for its number, or a higher one.
		news.Next = max(last, now-1)
	}
	return redislink.Result(news, a)
}

// event reads what a script has recorded.
func event(a *redislink.Answer) counter.Event {
	part := strings.SplitN(a.Text(), " ", 5)
	if len(part) != 5 {
		a.Must(false)
		return counter.Event{}
	}
	return counter.Event{ID: parse(part[0], a), Hot: part[1] == "hot", Hits: parse(part[2], a), At: timeOf(parse(part[3], a)), Item: part[4]}
}
