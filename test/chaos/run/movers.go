package run

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// movers are clients that move to other parents, leave and come back, by a file of clients that all instances follow.
type movers struct {
	*load
	file  string
	moves check.Moves
}

const (
	membersAtOnce = 4
	membersEvery  = 50 * time.Millisecond
	movesEvery    = 700 * time.Millisecond
)

// move writes the file again, at once as an operator should.
func (m *movers) move(h *testkit.Scope, r *rand.Rand, now func() time.Duration) {
	lines, text := plan.DrawCompany(r)
	testkit.OK(h, os.WriteFile(m.file+".new", []byte(text), 0o600))
	m.moves.Note(check.Move{Span: check.Span{From: now(), To: check.Open}, Lines: lines})
	testkit.OK(h, os.Rename(m.file+".new", m.file))
	m.moves.Written(now())
}

// start lets clients move and ask until the context ends.
func (m *movers) start(ctx context.Context, h *testkit.Scope, r *rand.Rand) {
	m.running.Go(func() {
		for tick := time.Tick(movesEvery); ctx.Err() == nil; <-tick {
			m.move(h, r, m.now)
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
