package testredis

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Servers listen on 10000 to 19999 and clusters gossip 10000 above. These are below
// the ports that systems give to outgoing connections, so that no client takes the
// port of a server that was killed and is to come back.
const (
	firstPort = 10000
	ports     = 10000
	busOffset = 10000 // Redis's
)

// nextPort goes round, so that a process does not give a port twice; it begins
// anywhere, so that processes seldom meet.
var nextPort atomic.Int64

func init() { nextPort.Store(rand.Int64N(ports)) }

// FreeAddr returns an address on which no process listens. The address for the cluster
// bus is free, too.
func FreeAddr() (string, error) {
	for range ports {
		port := firstPort + int(nextPort.Add(1)%ports)
		if addr := address(port); isFree(addr) && isFree(address(port+busOffset)) {
			return addr, nil
		}
	}
	return "", errors.New("there is no free port")
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func isFree(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
