package httpapi

import (
	"math"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// BoardKey names a leaderboard. The same name with another window is another board.
type BoardKey struct {
	Name     string         `json:"name"`
	Window   counter.Window `json:"window,omitempty"`    // default ever
	Zone     string         `json:"zone,omitempty"`      // an IANA name; default UTC
	SlidingS int64          `json:"sliding_s,omitempty"` // instead of a window: the last so many seconds
}

// ScoreRequest is the body of POST /v1/boards/score.
type ScoreRequest struct {
	Board BoardKey    `json:"board"`
	Score []ScoreMark `json:"score"`
}

// ScoreMark is what a member scores.
type ScoreMark struct {
	Member string          `json:"member"`
	By     *counter.Amount `json:"by,omitempty"` // default 1; may be negative, except on a sliding board
}

// ScoreAnswer is what POST /v1/boards/score answers, in the order of the members.
type ScoreAnswer struct {
	Scores []MemberScore `json:"scores"`
}

// MemberScore is what a member has.
type MemberScore struct {
	Member string         `json:"member"`
	Score  counter.Amount `json:"score"`
}

// RankingAnswer is what GET /v1/boards/top answers: the first members, the highest score
// first, equal ones by the bytes of their names.
type RankingAnswer struct {
	Places  []PlaceAnswer `json:"places"`
	Members int           `json:"members"`        // on the whole board
	Dropped int64         `json:"dropped"`        // for how many there was no room; as long as it is 0, everything is exact
	Start   time.Time     `json:"start,omitzero"` // of the window, if it has one that begins
}

// StandingAnswer is what GET /v1/boards/standing answers, in the order of the members.
type StandingAnswer struct {
	Places []PlaceAnswer `json:"places"`
}

// PlaceAnswer is where a member stands.
type PlaceAnswer struct {
	Rank   *int           `json:"rank"` // from 1; null if it is not on the board
	Member string         `json:"member"`
	Score  counter.Amount `json:"score"`
}

// scoreBoard answers POST /v1/boards/score.
func (h *Handler) scoreBoard(c *call, want *ScoreRequest) (any, error) {
	board, err := boardOf(want.Board, 0, inside("board"))
	if err != nil {
		return nil, err
	}
	marks, err := fault.Each("score", want.Score, counter.MaxBatch, func(m ScoreMark, field func(string) string) (counter.Mark, error) {
		mark := counter.Mark{Member: m.Member, By: amount(m.By)}
		return mark, manage.Invalid(board.ValidateScore([]counter.Mark{mark}), field)
	})
	if err != nil {
		return nil, err
	}
	scores, err := h.options.Counters.Score(c.r.Context(), board, marks...)
	answer := ScoreAnswer{Scores: make([]MemberScore, len(scores))}
	for i, score := range scores {
		answer.Scores[i] = MemberScore{Member: marks[i].Member, Score: score}
	}
	return answer, err
}

// inside is where an object has its fields. What a store calls by the kind of the object
// is its name.
func inside(object string) func(string) string {
	return func(field string) string {
		if field == object {
			field = "name"
		}
		return object + "." + field
	}
}

// getTop answers GET /v1/boards/top.
func (h *Handler) getTop(c *call) (any, error) {
	q, board := boardAsked(c, "", "n")
	n := q.whole("n", usualList, 1, counter.MaxTop)
	if q.err != nil {
		return nil, q.err
	}
	top, err := h.options.Counters.Top(c.r.Context(), board, int(n))
	return RankingAnswer{Places: placesOf(top.Places), Members: top.Members, Dropped: top.Dropped, Start: top.Start}, err
}

// getStanding answers GET /v1/boards/standing.
func (h *Handler) getStanding(c *call) (any, error) {
	q, board := boardAsked(c, "member")
	members := q.list("member", counter.MaxBatch)
	if q.err != nil {
		return nil, q.err
	}
	places, err := h.options.Counters.Standing(c.r.Context(), board, members...)
	return StandingAnswer{Places: placesOf(places)}, err
}

// boardAsked is the board that a query names.
func boardAsked(c *call, many string, more ...string) (*query, counter.Board) {
	q := c.queryOfTexts(many, append([]string{"board", "window", "zone", "sliding_s", "ago"}, more...)...)
	key := BoardKey{
		Name: q.text("board"), Zone: q.text("zone"),
		Window: q.window(counter.Ever), SlidingS: q.whole("sliding_s", 0, 1, maxSeconds),
	}
	board, err := boardOf(key, int(q.whole("ago", 0, 0, counter.BoardWindows-1)), itself)
	q.wrong(err)
	return q, board
}

// maxSeconds is the longest sliding window.
const maxSeconds = int64(counter.MaxSliding / time.Second)

// boardOf is a board as the store has it.
func boardOf(k BoardKey, ago int, field func(string) string) (counter.Board, error) {
	zone, err := manage.Zone(k.Zone, field("zone"))
	if err != nil {
		return counter.Board{}, err
	}
	if k.SlidingS != 0 {
		if k.Window != counter.Ever || zone != nil || ago != 0 {
			where := field("sliding_s")
			return counter.Board{}, fault.Field(where, "a sliding board has no window, zone or ago; leave them out.")
		}
		if err := seconds(k.SlidingS, field("sliding_s")); err != nil {
			return counter.Board{}, err
		}
	}
	board := counter.Board{Name: k.Name, Window: k.Window, Zone: zone, Ago: ago, Sliding: time.Duration(k.SlidingS) * time.Second}
	return board, manage.Invalid(board.Validate(), field)
}

// seconds is what is wrong with the length of a sliding window.
func seconds(n int64, field string) error {
	if n < 1 || n > maxSeconds {
		return fault.Field(field, "%d is out of range; write whole seconds, from 1 to %d.", n, maxSeconds)
	}
	return nil
}

func placesOf(places []counter.Standing) []PlaceAnswer {
	all := make([]PlaceAnswer, len(places))
	for i, p := range places {
		all[i] = PlaceAnswer{Member: p.Member, Score: p.Score}
		if p.Rank > 0 {
			all[i].Rank = &places[i].Rank
		}
	}
	return all
}

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
		if err := manage.Invalid(list.ValidateHit(want.Items[i:i+1]), manage.Item("items", i)); err != nil {
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
	return list, manage.Invalid(list.Validate(), field)
}

func heatOf(heats []counter.Heat) HeatAnswer {
	answer := HeatAnswer{Items: append([]counter.Heat{}, heats...)}
	for i := range answer.Items {
		answer.Items[i].Since = answer.Items[i].Since.UTC()
	}
	return answer
}

// ActionsRequest is the body of POST /v1/actions: what a user has done, each once.
type ActionsRequest struct {
	User    string   `json:"user"`
	Actions []string `json:"actions"`
	Zone    string   `json:"zone,omitempty"` // whose hours and days they are, as an IANA name; default UTC
}

// ActionsAnswer is how often a user has done things in this hour, and on this day, in the
// order in which they were named.
type ActionsAnswer struct {
	User    string          `json:"user"`
	Actions []counter.Tally `json:"actions"`
}

// ActionHistoryAnswer is what GET /v1/actions/history answers: how often a user has done
// things in each window, the earliest first.
type ActionHistoryAnswer struct {
	User    string          `json:"user"`
	Actions []counter.Track `json:"actions"`
}

// maxActions is how many actions one call names: each is two counters.
const maxActions = counter.MaxBatch / 2

// recordActions answers POST /v1/actions.
func (h *Handler) recordActions(c *call, want *ActionsRequest) (any, error) {
	if err := fault.Length("actions", len(want.Actions), maxActions); err != nil {
		return nil, err
	}
	if err := manage.CheckNames("actions", want.Actions); err != nil {
		return nil, err
	}
	zone, err := manage.Zone(want.Zone, "zone")
	if err != nil {
		return nil, err
	}
	tallies, err := counter.Actions{Store: h.options.Counters, Zone: zone}.Record(c.r.Context(), want.User, want.Actions...)
	return ActionsAnswer{User: want.User, Actions: tallies}, err
}

// getActions answers GET /v1/actions.
func (h *Handler) getActions(c *call) (any, error) {
	q, actions, names := h.actionsAsked(c)
	if q.err != nil {
		return nil, q.err
	}
	tallies, err := actions.Read(c.r.Context(), q.text("user"), names...)
	return ActionsAnswer{User: q.text("user"), Actions: tallies}, err
}

// getActionHistory answers GET /v1/actions/history.
func (h *Handler) getActionHistory(c *call) (any, error) {
	q, actions, names := h.actionsAsked(c, "window", "n")
	window := q.window(counter.Hour)
	if window != counter.Hour && window != counter.Day {
		q.wrong(fault.Field("window", "actions are not counted per %v; write hour or day.", window))
	}
	n := q.windows(window)
	if q.err != nil {
		return nil, q.err
	}
	tracks, err := actions.History(c.r.Context(), q.text("user"), window, n, names...)
	return ActionHistoryAnswer{User: q.text("user"), Actions: tracks}, err
}

// actionsAsked are the actions that a query is about.
func (h *Handler) actionsAsked(c *call, more ...string) (q *query, in counter.Actions, names []string) {
	q = c.queryOfTexts("action", append([]string{"user", "zone"}, more...)...)
	names = q.list("action", maxActions)
	zone, err := manage.Zone(q.text("zone"), "zone")
	q.wrong(err)
	return q, counter.Actions{Store: h.options.Counters, Zone: zone}, names
}
