package httpapi

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/queue"
)

var queueRoutes = []route{
	{"GET", "/v1/queues", looking, (*Handler).getQueues},
	{"GET", "/v1/queues/{queue}", looking, queueing(http.StatusOK, (*Handler).getQueue)},
	{"POST", "/v1/queues/{queue}/push", using, queueing(http.StatusAccepted, (*Handler).pushWork)},
	{"POST", "/v1/queues/{queue}/lease", using, queueing(http.StatusOK, (*Handler).leaseWork)},
	{"POST", "/v1/queues/{queue}/ack", using, queueing(http.StatusOK, (*Handler).ackWork)},
	{"POST", "/v1/queues/{queue}/nack", using, queueing(http.StatusOK, (*Handler).nackWork)},
	{"POST", "/v1/queues/{queue}/extend", using, queueing(http.StatusOK, (*Handler).extendLease)},
	{"POST", "/v1/queues/{queue}/return", using, queueing(http.StatusOK, (*Handler).returnWork)},
	{"GET", "/v1/queues/{queue}/dead", looking, queueing(http.StatusOK, (*Handler).getDead)},
	{"POST", "/v1/queues/{queue}/requeue", changing, queueing(http.StatusOK, (*Handler).requeueDead)},
	{"POST", "/v1/queues/{queue}/delete", changing, queueing(http.StatusOK, (*Handler).deleteDead)},
}

// queueing makes a route of what answers about the queue that the path names, with an
// object or a problem.
func queueing(status int, serve func(*Handler, *call, *queue.Terms) (any, *Problem)) func(*Handler, *call) {
	return func(h *Handler, c *call) {
		if !h.hasQueues(c) {
			return
		}
		terms, err := h.options.Queues.Terms(c.variable)
		if err != nil {
			c.refuse(h.queueTrouble(c, err))
			return
		}
		answer, p := serve(h, c, terms)
		if p != nil {
			c.refuse(p)
			return
		}
		c.answer(status, answer)
	}
}

// hasQueues reports whether there are any. If not, the call has been answered.
func (h *Handler) hasQueues(c *call) bool {
	if h.options.Queues == nil {
		c.refuse(notKept.of("This server has no queues; ask one that does."))
		return false
	}
	return true
}

// QueuesAnswer is what GET /v1/queues answers.
type QueuesAnswer struct {
	Queues []QueueAnswer `json:"queues"`
}

// QueueAnswer is what is in a queue. Times are milliseconds.
type QueueAnswer struct {
	Name     string       `json:"name"`
	Ready    int64        `json:"ready"`    // wait for their turn
	Delayed  int64        `json:"delayed"`  // are held back after a failure
	Leased   int64        `json:"leased"`   // are at a worker
	Capacity int64        `json:"capacity"` // for those three together
	Dead     int64        `json:"dead"`
	Dropped  int64        `json:"dropped"`         // dead letters that were too many
	OldestMS int64        `json:"oldest_ms"`       // how long the oldest that is ready has waited
	WaitMS   int64        `json:"wait_ms"`         // until the next release, if something is ready
	Terms    *TermsAnswer `json:"terms,omitempty"` // of GET /v1/queues/{queue}
}

// TermsAnswer is how a queue was declared.
type TermsAnswer struct {
	Pace         string `json:"pace"`        // items in a period, such as "50/1s"
	MaxPayload   int    `json:"max_payload"` // bytes
	VisibilityMS int64  `json:"visibility_ms"`
	MaxTries     int    `json:"max_tries"`
	BackoffMS    int64  `json:"backoff_ms"`
	MaxBackoffMS int64  `json:"max_backoff_ms"`
	MaxDead      int    `json:"max_dead"`
	RememberMS   int64  `json:"remember_ms"`
}

// PushRequest is the body of POST /v1/queues/{queue}/push. The payload is text, or bytes
// in base64.
type PushRequest struct {
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
	ID            string  `json:"id,omitempty"` // makes it safe to push again
}

// PushAnswer is what whoever pushed is told.
type PushAnswer struct {
	Number    int64       `json:"number"` // 0 for a duplicate of what was done
	Duplicate bool        `json:"duplicate"`
	State     queue.State `json:"state"`
	Position  int64       `json:"position"` // among those that are ready, from 1; else 0
	WaitMS    int64       `json:"wait_ms"`  // until its turn, if workers keep up
}

// getQueues answers GET /v1/queues.
func (h *Handler) getQueues(c *call) {
	if !h.hasQueues(c) {
		return
	}
	if _, p := c.query(); p != nil {
		c.refuse(p)
		return
	}
	answer := QueuesAnswer{Queues: []QueueAnswer{}}
	for _, name := range h.options.QueueNames {
		stats, err := h.options.Queues.Stats(c.r.Context(), name)
		if err != nil {
			c.refuse(h.queueTrouble(c, err))
			return
		}
		answer.Queues = append(answer.Queues, queueOf(name, stats))
	}
	c.answer(http.StatusOK, answer)
}

// getQueue answers GET /v1/queues/{queue}.
func (h *Handler) getQueue(c *call, terms *queue.Terms) (any, *Problem) {
	if _, p := c.query(); p != nil {
		return nil, p
	}
	stats, err := h.options.Queues.Stats(c.r.Context(), c.variable)
	if err != nil {
		return nil, h.queueTrouble(c, err)
	}
	answer := queueOf(c.variable, stats)
	answer.Terms = &TermsAnswer{
		Pace: weir.Limit{N: terms.N, Period: terms.Period}.Rate(), MaxPayload: terms.MaxPayload,
		VisibilityMS: millis(terms.Visibility), MaxTries: terms.MaxTries,
		BackoffMS: millis(terms.Backoff), MaxBackoffMS: millis(terms.MaxBackoff),
		MaxDead: terms.MaxDead, RememberMS: millis(terms.Remember),
	}
	return answer, nil
}

// pushWork answers POST /v1/queues/{queue}/push.
func (h *Handler) pushWork(c *call, terms *queue.Terms) (any, *Problem) {
	// In JSON a byte may take six: whatever the queue accepts can be written.
	var want PushRequest
	if p := c.decode(6*int64(terms.MaxPayload)+maxSmallBody, &want, "payload", "payload_base64", "id"); p != nil {
		return nil, p
	}
	work := queue.Work{ID: want.ID}
	switch {
	case want.Payload != nil && want.PayloadBase64 != nil:
		return nil, badField.of("payload_base64: there is a payload, too; send one of them.").in("payload_base64")
	case want.Payload != nil:
		work.Payload = []byte(*want.Payload)
	case want.PayloadBase64 != nil:
		var err error
		if work.Payload, err = base64.StdEncoding.Strict().DecodeString(*want.PayloadBase64); err != nil {
			return nil, badField.of("payload_base64: it is not base64; send it with the alphabet of + and /, and = at the end.").in("payload_base64")
		}
	default:
		return nil, badField.of(`payload: it is missing; send what is to be done, even if it is "".`).in("payload")
	}
	place, err := h.options.Queues.Push(c.r.Context(), c.variable, work)
	if err != nil {
		return nil, h.queueTrouble(c, err)
	}
	return PushAnswer{
		Number: place.Number, Duplicate: place.Duplicate, State: place.State, Position: place.Position, WaitMS: millis(place.Wait),
	}, nil
}

func queueOf(name string, s queue.Stats) QueueAnswer {
	return QueueAnswer{
		Name: name, Ready: s.Ready, Delayed: s.Delayed, Leased: s.Leased, Capacity: s.Capacity,
		Dead: s.Dead, Dropped: s.Dropped, OldestMS: millis(s.Age), WaitMS: millis(s.Wait),
	}
}

// queueTrouble is why a queue has not done what it was asked.
func (h *Handler) queueTrouble(c *call, err error) *Problem {
	if p := invalidIn(err, itself); p != nil {
		return p
	}
	switch {
	case errors.Is(err, queue.ErrNoQueue):
		return noQueue.of("There is no queue %.*q; GET /v1/queues lists all.", queue.MaxNameLen, c.variable)
	case errors.Is(err, queue.ErrLost):
		return leaseLost.of("The lease has ended, or its time was over and somebody else has the item; leave it to them.").in("token")
	case errors.Is(err, queue.ErrFull):
		c.Header().Set("Retry-After", h.roomAfter(c.variable))
		return queueFull.of("The queue holds as much as it may; try again when some of it is done.")
	}
	return h.storeTrouble(c, err)
}

// maxRoomAfter is after how many seconds it is worth trying again, however slow a queue
// is: somebody may delete something.
const maxRoomAfter = 3600

// roomAfter is when a full queue may have room, in seconds: when the next item has left.
func (h *Handler) roomAfter(name string) string {
	terms, err := h.options.Queues.Terms(name)
	if err != nil {
		return "1"
	}
	turn := terms.Period / time.Duration(terms.N)
	return strconv.FormatInt(min(maxRoomAfter, max(1, (millis(turn)+999)/1000)), 10)
}
