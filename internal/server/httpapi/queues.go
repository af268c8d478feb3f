package httpapi

import (
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
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
		return nil, fault.Field("payload_base64", "cannot be combined with payload; send one of them.")
	case want.Payload != nil:
		work.Payload = []byte(*want.Payload)
	case want.PayloadBase64 != nil:
		var err error
		if work.Payload, err = base64.StdEncoding.Strict().DecodeString(*want.PayloadBase64); err != nil {
			return nil, fault.Field("payload_base64", "not valid base64; use the standard alphabet (+ and /) with = padding.")
		}
	default:
		return nil, fault.Field("payload", `required; send the work to do, or "" for none.`)
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

// DeadAnswer is what GET /v1/queues/{queue}/dead answers, the oldest first.
type DeadAnswer struct {
	Dead []DeadWork `json:"dead"`
	Next int64      `json:"next"` // after which to ask for more; an empty list is the end
}

// DeadWork is an item that has failed for good.
type DeadWork struct {
	WorkItem
	Died   time.Time `json:"died"`
	Reason string    `json:"reason"`
}

// NumbersRequest is the body of the calls that requeue or delete dead letters.
type NumbersRequest struct {
	Numbers []int64 `json:"numbers"`
}

func (r *NumbersRequest) validate() error {
	return fault.Length("numbers", len(r.Numbers), queue.MaxBatch)
}

// RequeueAnswer is how many were dead letters, and are at the end of the queue now.
type RequeueAnswer struct {
	Requeued int `json:"requeued"`
}

// DeleteAnswer is how many were dead letters, and are forgotten.
type DeleteAnswer struct {
	Deleted int `json:"deleted"`
}

// maxNumber is where numbers of items end: scripts of Redis can count no further.
const maxNumber = 1<<53 - 1

// getDead answers GET /v1/queues/{queue}/dead.
func (h *Handler) getDead(c *call) (any, error) {
	q := c.queryOfTexts("", "after", "limit")
	after, limit := q.whole("after", 0, 0, maxNumber), q.whole("limit", usualList, 1, queue.MaxBatch)
	if q.err != nil {
		return nil, q.err
	}
	letters, err := h.options.Queues.DeadLetters(c.r.Context(), c.variable, after, int(limit))
	answer := DeadAnswer{Dead: make([]DeadWork, len(letters)), Next: after}
	for i, l := range letters {
		answer.Dead[i] = DeadWork{WorkItem: itemOf(l.Number, l.ID, l.Payload, l.Tries, l.Pushed), Died: timeOf(l.Died), Reason: l.Reason}
		answer.Next = l.Number
	}
	return answer, err
}

// requeueDead answers POST /v1/queues/{queue}/requeue.
func (h *Handler) requeueDead(c *call, want *NumbersRequest) (any, error) {
	n, err := h.options.Queues.Requeue(c.r.Context(), c.variable, want.Numbers...)
	if errors.Is(err, queue.ErrFull) {
		return nil, c.full("The queue is full; %d dead letters were requeued. Send the others again when some items are done.", n)
	}
	return RequeueAnswer{Requeued: n}, err
}

// deleteDead answers POST /v1/queues/{queue}/delete.
func (h *Handler) deleteDead(c *call, want *NumbersRequest) (any, error) {
	n, err := h.options.Queues.Delete(c.r.Context(), c.variable, want.Numbers...)
	return DeleteAnswer{Deleted: n}, err
}

// LeaseToken is the body of the calls that end or extend a lease.
type LeaseToken struct {
	Token string `json:"token"`
}

func (l *LeaseToken) validate() error {
	if l.Token == "" {
		return fault.Field("token", "required; send the token of the lease.")
	}
	return nil
}

// NackRequest is the body of POST /v1/queues/{queue}/nack.
type NackRequest struct {
	LeaseToken
	Reason string `json:"reason,omitempty"` // for people
	Bury   bool   `json:"bury,omitempty"`   // make it a dead letter at once
}

// StateAnswer is what has become of an item.
type StateAnswer struct {
	State          queue.State `json:"state"`
	RetryAfterMS   *int64      `json:"retry_after_ms,omitempty"`   // of what is delayed
	ExpiresAfterMS *int64      `json:"expires_after_ms,omitempty"` // of what is leased
}

// ackWork answers POST /v1/queues/{queue}/ack: it is done.
func (h *Handler) ackWork(c *call, want *LeaseToken) (any, error) {
	return StateAnswer{State: queue.Done}, h.options.Queues.Ack(c.r.Context(), c.variable, want.Token)
}

// returnWork answers POST /v1/queues/{queue}/return: it was not begun.
func (h *Handler) returnWork(c *call, want *LeaseToken) (any, error) {
	return StateAnswer{State: queue.Ready}, h.options.Queues.Return(c.r.Context(), c.variable, want.Token)
}

// extendLease answers POST /v1/queues/{queue}/extend: the worker needs more time.
func (h *Handler) extendLease(c *call, want *LeaseToken) (any, error) {
	left, err := h.options.Queues.Extend(c.r.Context(), c.variable, want.Token)
	expires := left.Milliseconds()
	return StateAnswer{State: queue.Leased, ExpiresAfterMS: &expires}, err
}

// nackWork answers POST /v1/queues/{queue}/nack: it has failed.
func (h *Handler) nackWork(c *call, want *NackRequest) (any, error) {
	outcome, err := h.options.Queues.Nack(c.r.Context(), c.variable, want.Token, queue.Failure{Reason: want.Reason, Bury: want.Bury})
	if outcome.Dead {
		return StateAnswer{State: queue.Dead}, err
	}
	retry := millis(outcome.RetryAfter)
	return StateAnswer{State: queue.Delayed, RetryAfterMS: &retry}, err
}

// maxReasonBody is the longest body with a reason, of which queue.MaxReasonLen are kept:
// who sends a whole trace is not rejected for it.
const maxReasonBody = 64 << 10

func millis(d time.Duration) int64 { return notation.CeilDuration(d, time.Millisecond) }
