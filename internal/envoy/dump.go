package envoy

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

// Dump writes every limit in a line, by domain and in the order of the files, as
// envoyproxy/ratelimit does at /rlconfig:
//
//	edge.path_/login.remote_address: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false
//
// What weir adds to a limit follows in the same line.
func (c *Config) Dump(w io.Writer) error {
	b := bufio.NewWriter(w)
	for n := range c.Nodes() {
		n.dump(b)
	}
	return b.Flush()
}

func (n *Node) dump(b *bufio.Writer) {
	if n.Unlimited {
		fmt.Fprintf(b, "%s: unlimited: true\n", n.Path)
	}
	for i := range n.Limits {
		l := &n.Limits[i]
		unit := strings.ToUpper(l.Unit.String())
		if l.Unit == Unknown {
			unit = duration.Format(l.Period)
		}
		fmt.Fprintf(b, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t", n.Path, unit, l.N, n.Shadow, n.Quota)
		if l.Name != "" {
			fmt.Fprintf(b, ", name: %s", l.Name)
		}
		if l.Algorithm != weir.FixedWindow {
			fmt.Fprintf(b, ", algorithm: %s", l.Algorithm)
		}
		if l.Burst > 0 {
			fmt.Fprintf(b, ", burst: %d", l.Burst)
		}
		if n.Failure != FailOpen {
			fmt.Fprintf(b, ", on_failure: %s", n.Failure)
		}
		b.WriteByte('\n')
	}
}
