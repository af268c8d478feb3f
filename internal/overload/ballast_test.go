package overload

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
)

const childVariable = "WEIR_TEST_GARBAGE"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	live := make([]byte, 1<<20)
	if os.Getenv(childVariable) == "room" {
		defer Ballast(ServiceBallast)()
	}
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	runtime.KeepAlive(live)
	fmt.Println(goal[0].Value.Uint64()>>20, resident())
}

// resident is how much memory the system has given, in MiB.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0 // unknown on this system
	}
	var size, pages int
	fmt.Sscan(string(text), &size, &pages)
	return pages * os.Getpagesize() >> 20
}

// A process of 1 MiB lets its heap grow to 4 MiB before it is collected, and with room to
// twice the room, which itself takes no memory. How often it is collected then, and how far
// the heap grows meanwhile, would be about how busy the machine is.
func TestRoom(t *testing.T) {
	for env, want := range map[string]struct{ least, most int }{
		"none": {1, 8}, "room": {60, 80}, "room GOGC=100": {1, 8}, "room GOMEMLIMIT=1GiB": {1, 8},
	} {
		c := exec.Command(os.Args[0])
		c.Env = strings.Fields(childVariable + "=" + env)
		out, err := c.Output()
		var goal, resident int
		if err == nil {
			_, err = fmt.Fscan(bytes.NewReader(out), &goal, &resident)
		}
		if err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		t.Logf("%s: collected at %d MiB, %d MiB are resident", env, goal, resident)
		if goal < want.least || goal > want.most {
			t.Errorf("%s: it is collected at %d MiB, want %d to %d", env, goal, want.least, want.most)
		}
		if resident > 30 {
			t.Errorf("%s: %d MiB are resident", env, resident)
		}
	}
}
