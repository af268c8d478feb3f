// Package ballast lets a service with a small heap collect garbage less often.
//
// Go collects when the heap has doubled, and at 4 MiB if it is small. A service that keeps
// three and allocates a hundred a second so does it dozens of times a second, for which
// every request pays: in help for the collector, and in stacks that shrink and grow again.
package ballast

import (
	"os"
	"runtime"
)

// Room lets so many bytes of garbage gather, besides as many as there are in use,
// before it is collected, until it is given up. If GOGC or GOMEMLIMIT is set, Room does
// nothing.
func Room(bytes int) (giveUp func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	// For the collector, the heap is larger by this. It is never written to, so the system
	// allocates no memory for it.
	room := make([]byte, bytes)
	return func() { runtime.KeepAlive(room) }
}

// Service is the room that servers have.
const Service = 32 << 20
