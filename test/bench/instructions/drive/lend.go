//go:build leases

package main

import (
	"context"
	"fmt"
	"strings"
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
	}
	lend = (*server).lend
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
