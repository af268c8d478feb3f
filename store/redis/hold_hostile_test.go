package redis

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testcall"
)

// All holds of a key that expire together are ended in a few writes: a script blocks Redis.
func TestHoldsExpireTogether(t *testing.T) {
	client := connect(t)
	testcall.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
	store := storeOn(t, client, Options{Timeout: 20 * time.Second})
	limit := testcall.Must(weir.Limit{N: 10_000, Period: time.Hour, Burst: 10_000, Release: true}.Compile())(t)
	op := weir.Op{Key: "k", Limit: limit, Cost: 1}
	for i := range weir.MaxHolds {
		r := weir.Reservation{TTL: 3 * time.Second}
		binary.BigEndian.PutUint64(r.ID[:], uint64(i+1))
		if d := testcall.Must(store.Reserve(t.Context(), nil, r, op))(t); !d[0].Allowed {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	time.Sleep(3 * time.Second)
	testcall.OK(t, client.Do(t.Context(), client.B().Arbitrary("CONFIG", "RESETSTAT").Build()).Error())
	d := testcall.Must(store.Take(t.Context(), nil, op))(t)
	if d[0].Remaining != 9999 {
		t.Errorf("%+v", d)
	}
	text := testcall.Must(client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString())(t)
	calls := regexp.MustCompile(`cmdstat_hset:calls=(\d+)`).FindStringSubmatch(text)
	if calls == nil {
		return
	}
	if n := testcall.Must(strconv.Atoi(calls[1]))(t); n > 2*weir.MaxHolds {
		t.Errorf("%d writes", n)
	}
}
