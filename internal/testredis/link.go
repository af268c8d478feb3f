package testredis

import (
	"net"
	"sync"
	"time"
)

// link is one connection through a proxy.
type link struct {
	client, server *net.TCPConn
	replies        chan piece
	left           int // how many bytes of replies it may still pass
	once           sync.Once
	ended          chan struct{}
}

// piece is a part of a reply, and when the client is to have it.
type piece struct {
	data []byte
	due  time.Time
}

// end closes both connections, as whoever hung up did.
func (l *link) end() {
	l.once.Do(func() {
		close(l.ended)
		l.client.Close()
		l.server.Close()
	})
}

// reset ends it without a farewell.
func (l *link) reset() {
	l.client.SetLinger(0)
	l.server.SetLinger(0)
	l.end()
}

// over reports whether it has ended.
func (l *link) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}
