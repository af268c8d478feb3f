//go:build leases

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/redis"
)

// lent is how many leases the key of each kind of request has.
var lent = map[string]int{}

func init() {
	for _, a := range []string{"token_bucket", "sliding_window"} {
		for _, leases := range []int{1, 100} {
			k := kind{fmt.Sprintf("%s, one key, leases: %d", a, leases), a + " 100000/720h", true, []step{take}}
			kinds = append(kinds, k)
			lent[k.name] = leases
		}
		k := kind{a + ", one key, report of a lease", a + " 100000/720h", true, []step{report}}
		kinds = append(kinds, k)
		lent[k.name] = crowd
	}
	lend = (*server).lend
}

// reports are the last that clients have sent.
var reports = struct {
	sync.Mutex
	of    map[*client]*weir.LeaseOp
	begun map[string]int // of each key
}{of: map[*client]*weir.LeaseOp{}, begun: map[string]int{}}

// report takes a unit, and reports that one of the lease was spent.
func report(s *redis.Store, ctx context.Context, c *client) error {
	reports.Lock()
	r := reports.of[c]
	if r == nil {
		form := 0
		if strings.HasSuffix(c.ops[0].Key, "crowd") {
			form = 1
		}
		r = &weir.LeaseOp{Op: c.ops[0], ID: weir.LeaseID{1, byte(2*reports.begun[c.ops[0].Key] + form)}, Seq: 1000, Keep: 2_000_000, Term: time.Hour}
		reports.of[c] = r
		reports.begun[c.ops[0].Key]++
	}
	reports.Unlock()
	r.Charged = r.Spent
	r.Seq, r.Spent = r.Seq+1, r.Spent+1
	_, err := s.Lease(ctx, nil, *r)
	return err
}

// lend waits until the format of leases is known: for a minute.
func (s *server) lend(names string) {
	var ops []weir.LeaseOp
	for _, k := range kinds {
		for i := range 2 * lent[k.name] {
			if strings.Contains(k.name, names) {
				op := k.clients([]string{"alone", "crowd"}[i%2])[0].ops[0]
				op.Cost = 0
				ops = append(ops, weir.LeaseOp{Op: op, ID: weir.LeaseID{1, byte(i)}, Want: 1, Term: time.Hour})
			}
		}
	}
	store := must(redis.New(s.client, redis.Options{Timeout: time.Minute}))
	defer store.Close()
	for seq, granted := int64(1), 0; granted < len(ops); seq++ {
		granted = 0
		for _, op := range ops {
			op.Seq = seq
			if answer := must(store.Lease(context.Background(), nil, op)); answer[0].Granted > 0 {
				granted++
			}
		}
		time.Sleep(time.Second)
	}
}
