package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// parts is a store on two servers: keys that begin with "b" are on the second one, which may be unavailable. Its Lease
// answers only if all do.
type parts struct {
	*network
	lost bool
}

func (p *parts) PartOf(op weir.Op) uint16 { return uint16(op.Key[0] - 'a') }

func (p *parts) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) (_ []weir.Decision, failed []error, err error) {
	for i, op := range ops {
		if p.lost && p.PartOf(op) > 0 {
			failed = make([]error, len(ops))
			failed[i] = errDown
			dst = append(dst, weir.Decision{})
			continue
		}
		if dst, err = p.Take(ctx, dst, op); err != nil {
			return dst, nil, err
		}
	}
	return dst, failed, nil
}

func (p *parts) PeekPartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	dst, err := p.Peek(ctx, dst, ops...)
	return dst, make([]error, len(ops)), err
}

func (p *parts) Reserve(context.Context, []weir.Decision, weir.Reservation, ...weir.Op) ([]weir.Decision, error) {
	return nil, errDown
}

func (p *parts) Settle(context.Context, weir.Settlement) (weir.Settled, error) {
	return weir.Settled{}, errDown
}

func (p *parts) ReservePartial(context.Context, []weir.Decision, weir.Reservation, ...weir.Op) ([]weir.Decision, []error, error) {
	return nil, nil, errDown
}

// A request about several servers gets leases, too, and these serve while one of the servers is unavailable.
func TestPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parts{network: &network{reference: newReference(wallNow), trip: time.Millisecond}}
		s := holder(t, p, Options{})
		ops := []weir.Op{{Key: "a", Limit: hourly, Cost: 1}, {Key: "b", Limit: hourly, Cost: 1}}
		for range 100 {
			d, failed, err := s.TakePartial(t.Context(), nil, ops...)
			if err != nil || failed != nil || !weir.Allowed(d) {
				t.Fatal(d, failed, err)
			}
			time.Sleep(time.Millisecond)
		}
		stats := s.Stats()
		if stats.Local < 80 || stats.Keys != 2 {
			t.Fatalf("%+v", stats)
		}
		d, failed, err := s.PeekPartial(t.Context(), nil, ops...)
		if err != nil || d[0].Remaining != 900 || d[1].Remaining != 900 {
			t.Errorf("%+v, %v, %v", d, failed, err)
		}
		p.lost = true
		p.set(func() { p.down = true })
		if _, failed, err := s.TakePartial(t.Context(), nil, ops...); err != nil || failed != nil {
			t.Error(failed, err)
		}
		p.set(func() { p.down = false })
		ops[0].Cost, ops[1].Cost = 500, 500
		d, failed, err = s.TakePartial(t.Context(), nil, ops...)
		if err != nil || failed == nil || failed[0] != nil || failed[1] != errDown || !d[0].Allowed {
			t.Errorf("%+v, %v, %v", d, failed, err)
		}
	})
}

// Methods for which the wrapped store has no equivalent.
func TestNoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, 0)
		l := testkit.Must(weir.NewLimiter(s, hourly.Limit()))(t)
		if _, _, err := l.Reserve(t.Context(), "k", 1, 0); !errors.Is(err, errNoHolds) {
			t.Error(err)
		}
		if _, err := s.Settle(t.Context(), weir.Settlement{}); !errors.Is(err, errNoHolds) {
			t.Error(err)
		}
		op := weir.Op{Key: "k", Limit: hourly, Cost: 1}
		if d, failed, err := s.PeekPartial(t.Context(), nil, op); err != nil || failed != nil || d[0].Remaining != 1000 {
			t.Error(d, failed, err)
		}
		if _, _, err := s.ReservePartial(t.Context(), nil, weir.Reservation{}, op); !errors.Is(err, errNoHolds) {
			t.Error(err)
		}
	})
}
