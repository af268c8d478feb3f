// Package garbage lets a service with a small heap collect it less often.
//
// Go collects when the heap has doubled, and at 4 MiB if it is small. A service that keeps
// three and allocates a hundred a second so does it dozens of times a second, for which
// every request pays: in help for the collector, and in stacks that shrink and grow again.
package garbage

import "os"

// room is never used. That it is there makes the heap larger by its size in the eyes of
// the collector; as nobody writes to it, the system gives no memory for it.
var room []byte

// Room lets so many bytes of garbage gather, besides as many as there are in use, before
// it is collected. Whoever has set GOGC or GOMEMLIMIT has decided that already, and it
// then does nothing.
func Room(bytes int) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		room = make([]byte, bytes)
	}
}

// Service is the room that servers have.
const Service = 32 << 20
