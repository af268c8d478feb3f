package overload

import (
	"os"
	"runtime"
)

// Ballast lets so many bytes of garbage gather, besides as many as there are in use,
// before it is collected, until it is given up. If GOGC or GOMEMLIMIT is set, Ballast does
// nothing.
func Ballast(bytes int) (giveUp func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	// For the collector, the heap is larger by this. It is never written to, so the system
	// allocates no memory for it.
	ballast := make([]byte, bytes)
	return func() { runtime.KeepAlive(ballast) }
}

// ServiceBallast is that of servers.
const ServiceBallast = 32 << 20
