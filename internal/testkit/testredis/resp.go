package testredis

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// replyTimeout is how long a server that does not answer is waited for.
const replyTimeout = 5 * time.Second

// Do sends a command over a connection of its own and returns the reply as text: an
// array is one element a line, and nil is empty. An error fails the test.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	reply, err := s.TryDo(args...)
	if err != nil {
		fatal(s.t, strings.Join(args, " "), err, s)
	}
	return reply
}

// List is Do for an array, whose elements may be any bytes.
func (s *Server) List(args ...string) []string {
	s.t.Helper()
	reply, err := s.do(s.direct(), replyTimeout, args...)
	if err != nil {
		fatal(s.t, strings.Join(args, " "), err, s)
	}
	return reply.elements
}

// TryDo is Do for what may fail. A server's error is its very words, as in
// "READONLY You can't write against a read only replica."
func (s *Server) TryDo(args ...string) (string, error) {
	reply, err := s.do(s.direct(), replyTimeout, args...)
	return reply.text, err
}

// Ask is TryDo as a client would do it, through the line if there is one, and with as much
// patience.
func (s *Server) Ask(patience time.Duration, args ...string) (string, error) {
	reply, err := s.do(s.Addr, patience, args...)
	return reply.text, err
}

func (s *Server) do(addr string, patience time.Duration, args ...string) (reply, error) {
	deadline := time.Now().Add(patience)
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return reply{}, err
	}
	defer c.Close()
	c.SetDeadline(deadline)
	if s.tls != nil {
		c = tls.Client(c, s.tls)
	}
	r := bufio.NewReader(c)
	if s.password != "" {
		if _, err := roundTrip(c, r, "AUTH", s.password); err != nil {
			return reply{}, err
		}
	}
	return roundTrip(c, r, args...)
}

// Info is one field of INFO.
func (s *Server) Info(section, field string) (string, error) {
	text, err := s.TryDo("INFO", section)
	if err != nil {
		return "", err
	}
	return lineOf(text, field), nil
}

// lineOf finds the value of a line "field:value".
func lineOf(text, field string) string {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}

// reply is what a server answers: an array is one element a line in its text.
type reply struct {
	text     string
	elements []string
}

func roundTrip(w io.Writer, r *bufio.Reader, args ...string) (reply, error) {
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, request.String()); err != nil {
		return reply{}, err
	}
	return readReply(r)
}

func readReply(r *bufio.Reader) (out reply, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return out, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return out, errors.New("a reply has no type")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return reply{text: rest}, nil
	case '-':
		return out, errors.New(rest)
	case '$', '*':
	default:
		return out, fmt.Errorf("%q is no reply", line)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 {
		return out, err
	}
	if kind == '*' {
		for range n {
			element, err := readReply(r)
			if err != nil {
				return out, err
			}
			out.elements = append(out.elements, element.text)
		}
		out.text = strings.Join(out.elements, "\n")
		return out, nil
	}
	text := make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(r, text)
	return reply{text: string(text[:n])}, err
}
