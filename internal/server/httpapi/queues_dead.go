package httpapi

import (
	"errors"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/queue"
)

// DeadAnswer is what GET /v1/queues/{queue}/dead answers, the oldest first.
type DeadAnswer struct {
	Dead []DeadWork `json:"dead"`
	Next int64      `json:"next"` // after which to ask for more; an empty list is the end
}

// DeadWork is an item that has failed for good.
type DeadWork struct {
	Number int64  `json:"number"`
	ID     string `json:"id,omitempty"`
	WorkPayload
	Tries  int       `json:"tries"`
	Pushed time.Time `json:"pushed"`
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
		answer.Dead[i] = DeadWork{
			Number: l.Number, ID: l.ID, WorkPayload: payloadOf(l.Payload), Tries: l.Tries,
			Pushed: timeOf(l.Pushed), Died: timeOf(l.Died), Reason: l.Reason,
		}
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
