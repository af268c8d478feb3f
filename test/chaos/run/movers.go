package run

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// movers are clients that move to other parents, leave and come back, by imports at any instance, which all follow.
type movers struct {
	*load
	moves check.Moves
}

const (
	membersAtOnce = 4
	membersEvery  = 50 * time.Millisecond
	movesEvery    = 700 * time.Millisecond
)

// move imports a company. It is made as a whole, because it is one batch.
func (m *movers) move(r *rand.Rand) {
	lines, text := plan.DrawCompany(r)
	m.moves.Note(check.Move{Span: check.Span{From: m.now(), To: check.Open}, Lines: lines})
	var s said
	call := m.send(m.fleet[r.IntN(len(m.fleet))], "/v1/clients/import", []byte(text), &s)
	made := call.Status == http.StatusOK && len(s.Errors) == 0
	if m.moves.Answered(call.To, made); made {
		m.checker.NoteMove()
	}
}

// start lets clients move and ask until the context ends.
func (m *movers) start(ctx context.Context, r *rand.Rand) {
	m.moves.Note(check.Move{Made: true}) // there is no client
	m.running.Go(func() {
		for tick := time.Tick(movesEvery); ctx.Err() == nil; <-tick {
			m.move(r)
		}
	})
	for n := range membersAtOnce {
		own := rand.New(rand.NewPCG(uint64(n), 1<<22))
		m.running.Go(func() {
			for tick := time.Tick(membersEvery); ctx.Err() == nil; <-tick {
				m.checker.NoteGroup(m.member(plan.MoveKey(own.IntN(plan.MoveKeys)), m.fleet[own.IntN(len(m.fleet))]))
			}
		})
	}
}

// member asks for a client, whoever it is now.
func (m *movers) member(key string, to *instance) *check.Member {
	var s said
	one := &check.Member{Key: key, Moves: &m.moves, Call: m.call(to, "/v1/check", map[string]string{"path": plan.MovePath, "api_key": key}, &s)}
	var line []string
	for _, r := range s.Results {
		line = append(line, r.Key)
	}
	one.Line = strings.Join(line, " ")
	return one
}
