package httpapi

import (
	"math"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/manage"
)

// HotKey names a list of items that are hit, and says which are hot. All who share a
// list should say the same.
type HotKey struct {
	Name      string `json:"name"`
	WindowS   int64  `json:"window_s"`       // how long a hit counts, in seconds
	Threshold int64  `json:"threshold"`      // from how many hits on an item is hot
	Cool      int64  `json:"cool,omitempty"` // below how many it is so no longer; default threshold
}

// HitRequest is the body of POST /v1/hot/hit.
type HitRequest struct {
	List  HotKey   `json:"list"`
	Items []string `json:"items"`
}

// HeatAnswer is how items stand: those that were hit, in their order, or those that are
// hot, with the most hits first.
type HeatAnswer struct {
	Items []counter.Heat `json:"items"`
}

// hitItems answers POST /v1/hot/hit.
func (h *Handler) hitItems(c *call, want *HitRequest) (any, error) {
	list, err := hotList(want.List, inside("list"))
	if err == nil {
		err = fault.Length("items", len(want.Items), counter.MaxBatch)
	}
	if err != nil {
		return nil, err
	}
	for i := range want.Items {
		if err := invalidIn(list.ValidateHit(want.Items[i:i+1]), manage.Item("items", i)); err != nil {
			return nil, err
		}
	}
	heats, err := h.options.Counters.Hit(c.r.Context(), list, want.Items...)
	return heatOf(heats), err
}

// getHot answers GET /v1/hot.
func (h *Handler) getHot(c *call) (any, error) {
	q, list := hotAsked(c, "n")
	n := q.whole("n", usualList, 1, counter.MaxTop)
	if q.err != nil {
		return nil, q.err
	}
	heats, err := h.options.Counters.Hot(c.r.Context(), list, int(n))
	return heatOf(heats), err
}

// getHotEvents answers GET /v1/hot/events.
func (h *Handler) getHotEvents(c *call) (any, error) {
	q, list := hotAsked(c, "after")
	after := counter.Latest
	if q.text("after") != "latest" {
		after = q.whole("after", 0, 0, math.MaxInt64-1)
	}
	if q.err != nil {
		return nil, q.err
	}
	news, err := h.options.Counters.Events(c.r.Context(), list, after)
	news.Events = append([]counter.Event{}, news.Events...)
	for i := range news.Events {
		news.Events[i].At = news.Events[i].At.UTC()
	}
	return news, err
}

// hotAsked is the list that a query names.
func hotAsked(c *call, more string) (*query, counter.HotList) {
	q := c.queryOfTexts("", "list", "window_s", "threshold", "cool", more)
	list, err := hotList(HotKey{
		Name: q.text("list"), WindowS: q.whole("window_s", 0, 1, maxSeconds),
		Threshold: q.whole("threshold", 0, 1, int64(counter.MaxScore)), Cool: q.whole("cool", 0, 0, int64(counter.MaxScore)),
	}, itself)
	q.wrong(err)
	return q, list
}

// hotList is a list as the store has it.
func hotList(k HotKey, field func(string) string) (counter.HotList, error) {
	if err := seconds(k.WindowS, field("window_s")); err != nil {
		return counter.HotList{}, err
	}
	list := counter.HotList{Name: k.Name, Window: time.Duration(k.WindowS) * time.Second, Threshold: k.Threshold, Cool: k.Cool}
	return list, invalidIn(list.Validate(), field)
}

func heatOf(heats []counter.Heat) HeatAnswer {
	answer := HeatAnswer{Items: append([]counter.Heat{}, heats...)}
	for i := range answer.Items {
		answer.Items[i].Since = answer.Items[i].Since.UTC()
	}
	return answer
}
