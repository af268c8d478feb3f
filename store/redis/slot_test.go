package redis

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testredis"
)

// The slot of a key is where Redis looks for it.
func TestSlotOf(t *testing.T) {
	server := testredis.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{
		"", "a", "weir:T1m{alice}", "weir:T1m{}{}", "weir:T1m{a}b}", "weir:T1m{{a}}", "weir:T1m{\x00\xff}", "{weir}:T1m{a}",
		"no}brace{", "{open", strings.Repeat("x", 1024),
	} {
		if got := strconv.Itoa(int(slotOf(key))); got != server.Do("CLUSTER", "KEYSLOT", key) {
			t.Errorf("%.40q: %s, Redis says %s", key, got, server.Do("CLUSTER", "KEYSLOT", key))
		}
	}
}
