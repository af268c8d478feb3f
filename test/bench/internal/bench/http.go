package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

// Conn asks an HTTP server one question after the other over a connection, as cheaply as it can
// be done: a client's work is the same for all contestants, hides their differences, and takes the
// machine from them. It is not safe for concurrent use.
type Conn struct {
	net.Conn
	in *bufio.Reader
}

// Answer is what is looked at of an answer.
type Answer struct {
	Status  int
	Length  int           // of the body
	Limited bool          // it has a header about limits
	First   time.Duration // from the request to the first byte of the body, or to its absence
}

// Dial connects.
func Dial(address string) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{conn, bufio.NewReaderSize(conn, 32<<10)}, nil
}

// Ask sends a request, which is complete, and reads the whole answer.
func (c *Conn) Ask(request []byte) (a Answer, err error) {
	begin := time.Now()
	if _, err := c.Write(request); err != nil {
		return a, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if a.Status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, err
	}
	a.Length = -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		if len(line) <= len("\r\n") {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if a.Length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return a, err
			}
		}
		a.Limited = a.Limited || bytes.HasPrefix(line, []byte("Ratelimit: "))
	}
	if a.Length != 0 {
		if _, err := c.in.Peek(1); err != nil {
			return a, err
		}
	}
	a.First = time.Since(begin)
	if a.Length < 0 {
		a.Length, err = c.chunks()
	} else {
		_, err = c.in.Discard(a.Length)
	}
	return a, err
}

// chunks reads a body of unknown length.
func (c *Conn) chunks() (total int, err error) {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return 0, err
		}
		if _, err := c.in.Discard(int(size) + len("\r\n")); err != nil {
			return 0, err
		}
		if total += int(size); size == 0 {
			return total, nil
		}
	}
}

// AskHTTP asks an address, each caller over a connection of its own, which is there before the
// first round. An answer that is not right ends the round.
func AskHTTP(t testing.TB, address string, callers int, question func(caller, n int) []byte, right func(Answer) error) func(int) func(int) error {
	conns := make([]*Conn, callers)
	for g := range conns {
		conns[g] = testkit.Must(Dial(address))(t)
		t.Cleanup(func() { _ = conns[g].Close() })
	}
	return func(g int) func(int) error {
		return func(n int) error {
			a, err := conns[g].Ask(question(g, n))
			if err != nil {
				return fmt.Errorf("the status is %d: %w", a.Status, err)
			}
			return right(a)
		}
	}
}

// Serve serves a handler on a port of its own, and returns the address.
func Serve(t testing.TB, handler http.Handler) string {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
