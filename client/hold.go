package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Errors of a hold. After these two, charge what is not charged yet with [Client.Charge].
var (
	ErrHoldUnknown = errors.New("client: there is no such hold, or it ended too long ago")
	ErrHoldExpired = errors.New("client: the hold has expired")
)

// ErrUnavailable is returned by the methods of a Hold if the service is unavailable. Call
// again: a hold ends once, even if the service has got the first call.
var ErrUnavailable = errors.New("client: the service is unavailable")

// Hold is a charge that ends later, when the real cost is known. A nil Hold is one on
// nothing: its methods do nothing.
type Hold struct {
	ID      string
	Expires time.Time // by the clock of the service's store; zero if it is not known

	client *Client
}

// Settled is what has become of a hold.
type Settled struct {
	// Pending reports that the service could not reach its store, and will settle the hold
	// when it can.
	Pending bool

	Expires time.Time // if the hold is open
	Parts   []Part    // one for each rule; none if it is pending
}

// Part is what has become of one rule's part of a hold.
type Part struct {
	Rule, Unit string
	Shadow     bool
	Reserved   int64
	Used       int64 // 0 as long as the hold is open
	Excess     int64 // of Used, what was not charged, because the client is too deep in debt
}

// Charge charges the cost of a request even if it does not fit, for work that is done
// already. Allowed reports whether it fitted. If the service is unavailable, nothing is
// charged.
func (c *Client) Charge(ctx context.Context, r *Request) (*Verdict, error) {
	return c.askVerdict(ctx, r, c.limiter.Charge)
}

// Reserve asks whether a request is allowed, as Check does, and charges its cost as an
// estimate. Settle, Cancel or Extend the hold before ttl has passed; 0 is one minute. The
// hold is nil if nothing was charged: the request is denied, no limit applies to it, or the
// service is unavailable. It is also nil if the verdict is Unheld; use Charge if more was
// used than the estimate.
func (c *Client) Reserve(ctx context.Context, r *Request, ttl time.Duration) (*Hold, *Verdict, error) {
	var answer *pb.CheckResponse
	v, err := c.askVerdict(ctx, r, func(ctx context.Context, m *pb.CheckRequest, _ ...grpc.CallOption) (_ *pb.CheckResponse, err error) {
		answer, err = c.limiter.Reserve(ctx, &pb.ReserveRequest{Request: m, Ttl: lasting(ttl)})
		return answer, err
	})
	if err != nil || answer.GetHold() == "" {
		return nil, v, err
	}
	return &Hold{ID: answer.GetHold(), Expires: instant(answer.GetHoldExpiresAt()), client: c}, v, nil
}

// Hold returns the hold with an id, which another process may have reserved.
func (c *Client) Hold(id string) *Hold { return &Hold{ID: text(id), client: c} }

// Settle ends the hold with the units that were used. Less than was reserved is refunded;
// more is charged, even beyond the limit. If the hold has ended, the answer is that of the
// first time.
func (h *Hold) Settle(ctx context.Context, used int64) (Settled, error) {
	return h.ask(ctx, func(ctx context.Context) (*pb.HoldResponse, error) {
		return h.client.limiter.Settle(ctx, &pb.SettleRequest{Hold: h.ID, Used: proto.Int64(used)})
	})
}

// SettleUnits ends the hold with the units that were used, by unit. Rules with other units
// keep what was reserved.
func (h *Hold) SettleUnits(ctx context.Context, used map[string]int64) (Settled, error) {
	return h.ask(ctx, func(ctx context.Context) (*pb.HoldResponse, error) {
		return h.client.limiter.Settle(ctx, &pb.SettleRequest{Hold: h.ID, UsedByUnit: used})
	})
}

// Cancel ends the hold as if nothing was used.
func (h *Hold) Cancel(ctx context.Context) (Settled, error) {
	return h.ask(ctx, func(ctx context.Context) (*pb.HoldResponse, error) {
		return h.client.limiter.Cancel(ctx, &pb.CancelRequest{Hold: h.ID})
	})
}

// Extend lets the hold expire after ttl from now on; 0 is one minute.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (Settled, error) {
	return h.ask(ctx, func(ctx context.Context) (*pb.HoldResponse, error) {
		return h.client.limiter.Extend(ctx, &pb.ExtendRequest{Hold: h.ID, Ttl: lasting(ttl)})
	})
}

func (h *Hold) ask(ctx context.Context, call func(context.Context) (*pb.HoldResponse, error)) (s Settled, err error) {
	if h == nil {
		return s, nil
	}
	var answer *pb.HoldResponse
	away, err := h.client.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = call(ctx)
		return err
	})
	switch {
	case away != nil:
		return s, fmt.Errorf("%w: %w", ErrUnavailable, away)
	case status.Code(err) == codes.NotFound:
		return s, ErrHoldUnknown
	case status.Code(err) == codes.FailedPrecondition:
		return s, ErrHoldExpired
	case err != nil:
		return s, err
	}
	s.Pending = answer.GetState() == pb.HoldState_HOLD_STATE_PENDING
	s.Expires = instant(answer.GetExpiresAt())
	for _, p := range answer.GetParts() {
		s.Parts = append(s.Parts, Part{
			Rule: p.GetRule(), Unit: p.GetUnit(), Shadow: p.GetShadow(), Reserved: p.GetReserved(), Used: p.GetUsed(), Excess: p.GetExcess(),
		})
	}
	return s, nil
}

// lasting is a ttl as it is sent; the default is left out.
func lasting(ttl time.Duration) *durationpb.Duration {
	if ttl == 0 {
		return nil
	}
	return durationpb.New(ttl)
}
