package httpapi

import (
	"context"
	"encoding/base64"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/queue"
)

const (
	// MaxLeaseWait is how long POST /v1/queues/{queue}/lease may wait for work, in
	// seconds. Proxies and clients give up on answers that take much longer.
	MaxLeaseWait = 20

	// maxWaiting is how many calls may wait for work at once, of all queues together.
	maxWaiting = 256

	// firstLook is when an empty queue is asked again for the first time: something may
	// have come before anybody listened.
	firstLook = 50 * time.Millisecond
)

// LeaseRequest is the body of POST /v1/queues/{queue}/lease.
type LeaseRequest struct {
	Max     int   `json:"max,omitempty"`      // items at most; default 1
	AheadMS int64 `json:"ahead_ms,omitempty"` // how long before its release an item may be leased already
	WaitS   int64 `json:"wait_s,omitempty"`   // how long to wait for the first; default not at all
}

// LeaseAnswer is what was leased. That there is nothing is an answer, too.
type LeaseAnswer struct {
	Leases []WorkLease `json:"leases"`
	WaitMS *int64      `json:"wait_ms"` // until it makes sense to ask again; null if the queue is empty
}

// WorkItem is an item of a queue. Its payload is a text if it is UTF-8, or else in base64.
type WorkItem struct {
	Number        int64     `json:"number"`
	ID            string    `json:"id,omitempty"`
	Payload       *string   `json:"payload,omitempty"`
	PayloadBase64 string    `json:"payload_base64,omitempty"`
	Tries         int       `json:"tries"` // of a lease, with this one
	Pushed        time.Time `json:"pushed"`
}

// WorkLease is an item at a worker.
type WorkLease struct {
	WorkItem

	// Token proves the lease. It is a secret.
	Token string `json:"token"`

	DelayMS        int64 `json:"delay_ms"`         // hold it so long, then begin
	ExpiresAfterMS int64 `json:"expires_after_ms"` // when it goes to another
}

// leaseWork answers POST /v1/queues/{queue}/lease.
func (h *Handler) leaseWork(c *call, want *LeaseRequest) (any, error) {
	if most := queue.MaxAhead.Milliseconds(); want.AheadMS < 0 || want.AheadMS > most {
		return nil, fault.Field("ahead_ms", "%d is out of range; send up to %d.", want.AheadMS, most)
	}
	if want.WaitS < 0 || want.WaitS > MaxLeaseWait {
		return nil, fault.Field("wait_s", "%d is out of range; send up to %d, then call again.", want.WaitS, MaxLeaseWait)
	}
	ask := queue.Ask{Max: want.Max, Ahead: time.Duration(want.AheadMS) * time.Millisecond}
	batch, err := h.lease(c, ask)
	if err == nil && len(batch.Leases) == 0 && want.WaitS > 0 {
		batch, err = h.await(c, ask, batch, time.Duration(want.WaitS)*time.Second)
	}
	if err != nil {
		return nil, err
	}
	answer := LeaseAnswer{Leases: []WorkLease{}}
	if batch.Wait != weir.Never {
		wait := millis(batch.Wait)
		answer.WaitMS = &wait
	}
	for _, l := range batch.Leases {
		answer.Leases = append(answer.Leases, WorkLease{
			WorkItem: itemOf(l.Number, l.ID, l.Payload, l.Tries, l.Pushed), Token: l.Token,
			DelayMS: millis(l.Delay), ExpiresAfterMS: int64((time.Duration(l.Expires-l.Release)*time.Microsecond + l.Delay) / time.Millisecond),
		})
	}
	return answer, nil
}

// lease asks the queue once.
func (h *Handler) lease(c *call, ask queue.Ask) (queue.Batch, error) {
	ctx := c.r.Context()
	if err := ctx.Err(); err != nil {
		return queue.Batch{}, err
	}
	// Not with the context of the call: if the client disconnected meanwhile, the leases
	// would be lost.
	whole := context.WithoutCancel(ctx)
	batch, err := h.options.Queues.Lease(whole, c.variable, ask)
	if err != nil {
		return batch, err
	}
	if err := ctx.Err(); err != nil {
		for i := len(batch.Leases) - 1; i >= 0; i-- { // the last first: then its turn is free, too
			// What cannot be returned goes to another when its time is over.
			_ = h.options.Queues.Return(whole, c.variable, batch.Leases[i].Token)
		}
		return queue.Batch{}, err
	}
	return batch, nil
}

// await asks the queue until it has something, time is over, the server stops or the
// client is gone. The batch is what it said just now.
func (h *Handler) await(c *call, ask queue.Ask, batch queue.Batch, most time.Duration) (queue.Batch, error) {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return batch, fault.Busy.Of("%d calls are already waiting for work, the maximum; try again, or call without wait_s.", maxWaiting).After(time.Second)
	}
	defer h.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(c.r.Context(), most)
	wake := make(chan struct{}, 1)
	var listener sync.WaitGroup
	listener.Go(func() {
		// Whatever ends it, the queue is still asked now and then.
		_ = h.options.Queues.Watch(ctx, c.variable, func() {
			select {
			case wake <- struct{}{}:
			default: // once is enough
			}
		})
	})
	defer listener.Wait()
	defer cancel()
	for pause := firstLook; ; pause = min(2*pause, queue.DefaultPoll) {
		timer := time.NewTimer(max(time.Millisecond, min(pause, batch.Wait)))
		over := false
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
			over = true
		case <-h.options.Stopping:
			timer.Stop()
			return batch, nil
		}
		timer.Stop()
		var err error
		if batch, err = h.lease(c, ask); err != nil || len(batch.Leases) > 0 || over {
			return batch, err
		}
	}
}

func itemOf(number int64, id string, payload []byte, tries int, pushed weir.Micros) WorkItem {
	item := WorkItem{Number: number, ID: id, Tries: tries, Pushed: timeOf(pushed)}
	if utf8.Valid(payload) {
		text := string(payload)
		item.Payload = &text
	} else {
		item.PayloadBase64 = base64.StdEncoding.EncodeToString(payload)
	}
	return item
}

func timeOf(at weir.Micros) time.Time { return time.UnixMicro(int64(at)).UTC() }
