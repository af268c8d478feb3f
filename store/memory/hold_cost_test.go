package memory

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testcall"
)

// Many holds that expire together do not make a request wait for long.
func TestExpireMany(t *testing.T) {
	s, clock := open(1 << 20)
	limit := testcall.Must(weir.Limit{N: 10, Period: time.Hour, Release: true}.Compile())(t)
	for i := range 200_000 {
		r := weir.Reservation{TTL: time.Minute}
		binary.BigEndian.PutUint64(r.ID[:], uint64(i))
		testcall.Must(s.Reserve(t.Context(), nil, r, weir.Op{Key: fmt.Sprint(i), Limit: limit, Cost: 1}))(t)
	}
	clock.Pass(weir.Micros((2 * time.Minute).Microseconds()))
	begin := time.Now()
	testcall.Must(s.Take(t.Context(), nil, weir.Op{Key: "1", Limit: limit, Cost: 10}))(t)
	if took := time.Since(begin); took > 5*time.Second { // it takes a tenth of one
		t.Errorf("the request took %v", took)
	}
}
