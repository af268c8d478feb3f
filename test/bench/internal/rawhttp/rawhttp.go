// Package rawhttp asks an HTTP server one question after the other over a connection, as
// cheaply as it can be done: a client's work is the same for all contestants, hides their
// differences, and takes the machine from them.
package rawhttp

import (
	"bufio"
	"bytes"
	"net"
	"strconv"
	"time"
)

// Conn is a connection. It is not safe for concurrent use.
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
