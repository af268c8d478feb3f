package httpapi

import (
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/queue"
)

var queueRoutes = []route{
	{"GET", "/v1/queues", looking, queueing(withoutQuery((*Handler).getQueues))},
	{"GET", "/v1/queues/{queue}", looking, queueing(withoutQuery((*Handler).getQueue))},
	{"POST", "/v1/queues/{queue}/push", using, queueing((*Handler).pushWork)},
	{"POST", "/v1/queues/{queue}/lease", using, queueing(taking(maxSmallBody, (*Handler).leaseWork))},
	{"POST", "/v1/queues/{queue}/ack", using, queueing(taking(maxSmallBody, (*Handler).ackWork))},
	{"POST", "/v1/queues/{queue}/nack", using, queueing(taking(maxReasonBody, (*Handler).nackWork))},
	{"POST", "/v1/queues/{queue}/extend", using, queueing(taking(maxSmallBody, (*Handler).extendLease))},
	{"POST", "/v1/queues/{queue}/return", using, queueing(taking(maxSmallBody, (*Handler).returnWork))},
	{"GET", "/v1/queues/{queue}/dead", looking, queueing((*Handler).getDead)},
	{"POST", "/v1/queues/{queue}/requeue", changing, queueing(taking(maxSmallBody, (*Handler).requeueDead))},
	{"POST", "/v1/queues/{queue}/delete", changing, queueing(taking(maxSmallBody, (*Handler).deleteDead))},
}

// queueing makes a handler of one that needs queues, and the one that the path names.
func queueing(serve handler) handler {
	return withQueues(func(h *Handler, c *call) (answer any, err error) {
		if c.variable != "" {
			c.terms, err = h.options.Queues.Terms(c.variable)
		}
		if err == nil {
			answer, err = serve(h, c)
		}
		return answer, h.queueTrouble(c, err)
	})
}

var withQueues = having(func(o *Options) bool { return o.Queues != nil }, "queues-off", "Queues are not enabled on this server.")

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

// PushAnswer is the answer to a push.
type PushAnswer struct {
	Number    int64       `json:"number"` // 0 for a duplicate of what was done
	Duplicate bool        `json:"duplicate"`
	State     queue.State `json:"state"`
	Position  int64       `json:"position"` // among those that are ready, from 1; else 0
	WaitMS    int64       `json:"wait_ms"`  // until its turn, if workers keep up
}

// getQueues answers GET /v1/queues.
func (h *Handler) getQueues(c *call) (any, error) {
	answer := QueuesAnswer{Queues: []QueueAnswer{}}
	for _, name := range h.options.QueueNames {
		stats, err := h.options.Queues.Stats(c.r.Context(), name)
		if err != nil {
			return nil, err
		}
		answer.Queues = append(answer.Queues, queueOf(name, stats))
	}
	return answer, nil
}

// getQueue answers GET /v1/queues/{queue}.
func (h *Handler) getQueue(c *call) (any, error) {
	stats, err := h.options.Queues.Stats(c.r.Context(), c.variable)
	answer, t := queueOf(c.variable, stats), c.terms
	answer.Terms = &TermsAnswer{
		Pace: weir.Limit{N: t.N, Period: t.Period}.Rate(), MaxPayload: t.MaxPayload,
		VisibilityMS: millis(t.Visibility), MaxTries: t.MaxTries,
		BackoffMS: millis(t.Backoff), MaxBackoffMS: millis(t.MaxBackoff),
		MaxDead: t.MaxDead, RememberMS: millis(t.Remember),
	}
	return answer, err
}

// pushWork answers POST /v1/queues/{queue}/push.
func (h *Handler) pushWork(c *call) (any, error) {
	// In JSON a byte may take six: whatever the queue accepts can be written.
	var want PushRequest
	if err := c.decode(6*int64(c.terms.MaxPayload)+maxSmallBody, &want); err != nil {
		return nil, err
	}
	work := queue.Work{ID: want.ID}
	switch {
	case want.Payload != nil && want.PayloadBase64 != nil:
		return nil, fault.BadField.Of("payload_base64: cannot be combined with payload; send one of them.").In("payload_base64")
	case want.Payload != nil:
		work.Payload = []byte(*want.Payload)
	case want.PayloadBase64 != nil:
		var err error
		if work.Payload, err = base64.StdEncoding.Strict().DecodeString(*want.PayloadBase64); err != nil {
			return nil, fault.BadField.Of("payload_base64: not valid base64; use the standard alphabet (+ and /) with = padding.").In("payload_base64")
		}
	default:
		return nil, fault.BadField.Of(`payload: required; send the work to do, or "" for none.`).In("payload")
	}
	place, err := h.options.Queues.Push(c.r.Context(), c.variable, work)
	c.success = http.StatusAccepted
	return PushAnswer{
		Number: place.Number, Duplicate: place.Duplicate, State: place.State, Position: place.Position, WaitMS: millis(place.Wait),
	}, err
}

func queueOf(name string, s queue.Stats) QueueAnswer {
	return QueueAnswer{
		Name: name, Ready: s.Ready, Delayed: s.Delayed, Leased: s.Leased, Capacity: s.Capacity,
		Dead: s.Dead, Dropped: s.Dropped, OldestMS: millis(s.Age), WaitMS: millis(s.Wait),
	}
}

// queueTrouble is why a queue has not done what it was asked.
func (h *Handler) queueTrouble(c *call, err error) error {
	switch {
	case errors.Is(err, queue.ErrNoQueue):
		return fault.NoQueue.Of("There is no queue %.*q; GET /v1/queues lists all queues.", queue.MaxNameLen, c.variable)
	case errors.Is(err, queue.ErrLost):
		return fault.LeaseLost.Of("The lease has ended, or it expired and another worker has the item; stop working on it.").In("token")
	case errors.Is(err, queue.ErrFull):
		return c.full("The queue is full; try again when some items are done.")
	}
	return h.storeTrouble(c, err)
}

// maxRoomAfter is after how long it is worth trying again, however slow a queue is: somebody may
// delete something.
const maxRoomAfter = time.Hour

// full is that the queue has no room. It may have some when the next item has left.
func (c *call) full(format string, args ...any) *fault.Fault {
	turn := c.terms.Period / time.Duration(c.terms.N)
	return fault.QueueFull.Of(format, args...).After(min(maxRoomAfter, max(time.Second, turn)))
}
