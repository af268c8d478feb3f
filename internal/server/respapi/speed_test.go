package respapi

import (
	"strings"
	"testing"
)

// ready is a connection that has received a command.
func ready(t testing.TB, s *stand, command string) *work {
	t.Helper()
	c := &conn{server: s.Server, r: reader{buf: []byte(array(strings.Fields(command)...))}}
	c.r.end = len(c.r.buf)
	if found, err := c.r.next(); !found || err != nil {
		t.Fatal(found, err)
	}
	return &work{conn: c}
}

// A limit of a client's own takes no memory to decide. What a check says is copied once, and
// its map of attributes, if it has one, is made.
func TestAllocations(t *testing.T) {
	s := newStand(t, Options{})
	for command, most := range map[string]float64{
		"PING": 0,
		"CL.THROTTLE user:0000123456 1000000 1000000 60": 0,
		"WEIR.CHECK path /api/orders user alice":         1,
		"WEIR.PEEK path /api/orders user alice":          4, // the store's
	} {
		w := ready(t, s, command)
		got := testing.AllocsPerRun(40, func() {
			w.out = w.out[:0]
			w.run()
		})
		if got > most || w.out[0] == '-' {
			t.Errorf("%s: %v allocations, want at most %v; %s", command, got, most, w.out)
		}
	}
}

func BenchmarkCommand(b *testing.B) {
	for _, command := range []string{"PING", "CL.THROTTLE user:0000123456 1000000000 1000000000 1", "WEIR.CHECK user alice"} {
		b.Run(strings.Fields(command)[0], func(b *testing.B) {
			s := newStand(b, Options{})
			w := ready(b, s, command)
			b.ReportAllocs()
			for b.Loop() {
				w.out = w.out[:0]
				w.r.pos, w.r.args = 0, w.r.args[:0]
				if found, err := w.r.next(); !found || err != nil {
					b.Fatal(err)
				}
				w.run()
			}
		})
	}
}
