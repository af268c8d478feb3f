package httpapi

import (
	"errors"
	"time"

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
func (h *Handler) getDead(c *call, _ *queue.Terms) (any, *Problem) {
	query, p := c.asked("", "after", "limit")
	if p != nil {
		return nil, p
	}
	after, p := query.whole("after", 0, 0, maxNumber)
	if p != nil {
		return nil, p
	}
	limit, p := query.whole("limit", usualList, 1, queue.MaxBatch)
	if p != nil {
		return nil, p
	}
	letters, err := h.options.Queues.DeadLetters(c.r.Context(), c.variable, after, int(limit))
	if err != nil {
		return nil, h.queueTrouble(c, err)
	}
	answer := DeadAnswer{Dead: make([]DeadWork, len(letters)), Next: after}
	for i, l := range letters {
		answer.Dead[i] = DeadWork{
			Number: l.Number, ID: l.ID, WorkPayload: payloadOf(l.Payload), Tries: l.Tries,
			Pushed: timeOf(l.Pushed), Died: timeOf(l.Died), Reason: l.Reason,
		}
		answer.Next = l.Number
	}
	return answer, nil
}

// requeueDead answers POST /v1/queues/{queue}/requeue.
func (h *Handler) requeueDead(c *call, _ *queue.Terms) (any, *Problem) {
	numbers, p := c.numbers()
	if p != nil {
		return nil, p
	}
	n, err := h.options.Queues.Requeue(c.r.Context(), c.variable, numbers...)
	if err != nil {
		p := h.queueTrouble(c, err)
		if errors.Is(err, queue.ErrFull) {
			p.Detail = queueFull.of("The queue is full after %d of them; send the others again when some of it is done.", n).Detail
		}
		return nil, p
	}
	return RequeueAnswer{Requeued: n}, nil
}

// deleteDead answers POST /v1/queues/{queue}/delete.
func (h *Handler) deleteDead(c *call, _ *queue.Terms) (any, *Problem) {
	numbers, p := c.numbers()
	if p != nil {
		return nil, p
	}
	n, err := h.options.Queues.Delete(c.r.Context(), c.variable, numbers...)
	if err != nil {
		return nil, h.queueTrouble(c, err)
	}
	return DeleteAnswer{Deleted: n}, nil
}

// numbers reads which dead letters are meant.
func (c *call) numbers() ([]int64, *Problem) {
	var want NumbersRequest
	if p := c.decode(maxSmallBody, &want, "numbers"); p != nil {
		return nil, p
	}
	return want.Numbers, batch("numbers", len(want.Numbers), queue.MaxBatch)
}
