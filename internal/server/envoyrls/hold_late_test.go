package envoyrls

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// lateFile has limits that forget nothing within a history.
const lateFile = `
domain: d
descriptors:
  - {key: keep, hold: {id: id, end: {phase: done}}, reserve: 100, rate_limit: {unit: year, algorithm: sliding_log, requests_per_unit: 4000}}
  - {key: release, on_expiry: release, hold: {id: id, end: {phase: done}}, reserve: 100, rate_limit: {unit: year, algorithm: sliding_log, requests_per_unit: 4000}}
`

// pastRequest is a request that has begun, once or several times at the same instant.
type pastRequest struct {
	id      string
	open    int // holds that no call has ended
	expires weir.Micros
}

// ledger is what a list of requests says is used of a limit.
type ledger struct {
	key      string
	used     int64 // without what is reserved
	requests []*pastRequest
}

func (l *ledger) usage(now weir.Micros) (n int64) {
	n = l.used
	for _, r := range l.requests {
		if now < r.expires || l.key == "keep" {
			n += 100 * int64(r.open)
		}
	}
	return n
}

// end is a call that ends a request with what it has used.
func (l *ledger) end(r *pastRequest, used int64, now weir.Micros) {
	if l.used += used; r.open > 0 && now < r.expires {
		r.open--
	}
}

// Ends come in time, late, twice, or never, at whichever of two services, or while the store is unavailable: usage is what a ledger says.
func TestLateHistories(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		var now atomic.Int64
		now.Store(int64(24 * time.Hour.Microseconds() * 20_000))
		clock := func() weir.Micros { return weir.Micros(now.Load()) }
		var lost atomic.Bool
		store := &hooked{HoldStore: memory.New(memory.Options{Clock: clock}), settle: func(int64) error {
			if lost.Load() {
				return errLost
			}
			return nil
		}}
		services := [...]*Service{serviceOn(t, store, lateFile), serviceOn(t, store, lateFile)}
		l := &ledger{key: []string{"keep", "release"}[seed%2]}
		end := func(s *Service) {
			if len(l.requests) == 0 {
				return
			}
			p, used := l.requests[r.IntN(len(l.requests))], r.Int64N(200)
			l.end(p, used, clock())
			ask(t, s, "ok | ok 0", fmt.Sprintf("%s=a,id=%s,phase=done x%d", l.key, p.id, used))
		}
		begin := func(s *Service, p *pastRequest) {
			want := "over | over 0 of"
			if usage := l.usage(clock()); usage+100 <= 4000 {
				want = fmt.Sprintf("ok | ok %d of", 4000-usage-100)
				p.open++
			}
			ask(t, s, want, l.key+"=a,id="+p.id)
		}
		for i := range 60 {
			s := services[r.IntN(2)]
			switch r.IntN(5) {
			case 0:
				now.Add(r.Int64N((5 * time.Minute).Microseconds()))
			case 1, 2:
				end(s)
			default:
				p := &pastRequest{id: fmt.Sprint(i), expires: clock().Add(10 * time.Minute)}
				l.requests = append(l.requests, p)
				for range 1 + max(0, r.IntN(5)-2) {
					begin(services[r.IntN(2)], p)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, i)
			}
		}
		lost.Store(true)
		for range r.IntN(6) {
			end(services[0])
		}
		lost.Store(false)
		for _, s := range services {
			s.options.Engine.Close()
		}
		begin(services[1], &pastRequest{id: "last", expires: clock().Add(10 * time.Minute)})
		if t.Failed() {
			t.Fatalf("seed %d, at the end, of %s", seed, l.key)
		}
	}
}
