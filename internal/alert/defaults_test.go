package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// The default checks fire when more than 5 % of the requests are denied, when traffic
// drops, and when decisions take longer. Exactly 5 % does not fire.
func TestDefaultChecks(t *testing.T) {
	slow := traffic(1000, func(f *archive.Frame) {
		f.Decision = archive.Histogram{}
		f.Decision.Put(archive.DurationSlot(4*time.Millisecond), 1000)
	})
	for want, bad := range map[string]*archive.Frame{
		"firing denied": traffic(949, func(f *archive.Frame) { f.Requests.Denied = 51 }),
		"":              traffic(950, func(f *archive.Frame) { f.Requests.Denied = 50 }),
		"firing drop":   traffic(400, nil),
		"firing slow":   slow,
	} {
		p := newPlayer(t, nil)
		p.play(12*60, traffic(1000, nil), nil)
		p.play(3*60, bad, nil)
		if got := strings.Join(p.log, "\n"); !strings.HasSuffix(got, want) || (want == "") != (got == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
