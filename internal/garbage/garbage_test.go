package garbage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
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
		defer Room(Service)()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 256 << 10 { // 256 MiB
		garbage = make([]byte, 1<<10)
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(live)
	fmt.Println(after.NumGC-before.NumGC, resident())
}

var garbage []byte

// resident is how much memory the system has given, in MiB.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0 // on this system nobody says
	}
	var size, pages int
	fmt.Sscan(string(text), &size, &pages)
	return pages * os.Getpagesize() >> 20
}

// A process of 1 MiB that makes 256 of garbage collects it a few times only, and takes
// the room it was given, not twice as much.
func TestRoom(t *testing.T) {
	collections := func(env ...string) (n, resident int) {
		c := exec.Command(os.Args[0])
		c.Env = env
		out, err := c.Output()
		if err == nil {
			_, err = fmt.Fscan(bytes.NewReader(out), &n, &resident)
		}
		if err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		t.Log(strings.Join(env, " "), n, "collections", resident, "MiB")
		return n, resident
	}
	without, _ := collections(childVariable + "=none")
	with, resident := collections(childVariable + "=room")
	if without < 40 || with < 4 || with > 10 {
		t.Errorf("%d collections with room, %d without", with, without)
	}
	if resident > 56 && !raceEnabled { // 33, and the program
		t.Errorf("%d MiB are resident", resident)
	}
	for _, set := range []string{"GOGC=100", "GOMEMLIMIT=1GiB"} {
		if n, _ := collections(childVariable+"=room", set); n < 40 {
			t.Errorf("%s: %d collections; it was to be left alone", set, n)
		}
	}
}
