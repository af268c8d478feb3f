// Package unary asks a gRPC service for one short answer after the other, with many
// requests under way on a connection, and takes as little of the machine as it can.
//
// A general client needs as much CPU as the measured service, and so makes all services
// look alike. Envoy, the real client, needs little. Here, each goroutine has its own
// connection: it reads what has arrived, checks it, and writes the next requests
// together.
package unary

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Asks are what is asked: many at a time, and each answer is followed by another request.
type Asks struct {
	InFlight int

	// Ask returns the n-th message, from 0. It is not kept.
	Ask func(n int) []byte

	// Answered looks at the answer to it, which is not to be kept.
	Answered func(n int, message []byte, took time.Duration) error
}

// Conn is a connection. It is not safe for concurrent use.
type Conn struct {
	conn   net.Conn
	in     *bufio.Reader
	out    *bufio.Writer
	framer *http2.Framer

	encoder *hpack.Encoder
	block   bytes.Buffer // what the encoder writes
	fields  []hpack.HeaderField
	decoder *hpack.Decoder
	status  string // of the header block that was decoded last
	reason  string

	next    uint32            // stream
	streams map[uint32]*query // under way
	idle    []*query          // to be used again
	window  int64             // bytes that may be sent
	unread  uint32            // bytes that were received and not yet credited
	message []byte
}

// query is a request that is under way.
type query struct {
	n     int
	begin time.Time
	body  []byte
}

const (
	firstWindow = 65_535  // as HTTP/2 has it
	ourWindow   = 1 << 30 // so that the server never waits for this client
	prefix      = 5       // bytes before a message of gRPC
)

// Dial connects. The method is as in "/package.Service/Method".
func Dial(address, method string) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: bufio.NewWriterSize(conn, 64<<10),
		next: 1, streams: map[uint32]*query{}, window: firstWindow,
		fields: []hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
			{Name: ":path", Value: method}, {Name: ":authority", Value: address},
			{Name: "te", Value: "trailers"}, {Name: "content-type", Value: "application/grpc"},
			{Name: "grpc-timeout", Value: "10S"}, // Envoy always names one
		},
	}
	c.framer = http2.NewFramer(c.out, c.in)
	c.framer.SetReuseFrames()
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		switch f.Name {
		case "grpc-status":
			c.status = f.Value
		case "grpc-message":
			c.reason = f.Value
		}
	})
	_, err = c.out.WriteString(http2.ClientPreface)
	if err == nil {
		err = c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	}
	if err == nil {
		err = c.framer.WriteWindowUpdate(0, ourWindow-firstWindow)
	}
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Run asks again and again until it is over, and then waits for the last answers. It gives up
// when there is no answer at all for ten seconds. After an error the connection is good for nothing.
func (c *Conn) Run(a Asks, over func() bool) error {
	n := 0
	for ; n < a.InFlight; n++ {
		if err := c.ask(n, a.Ask(n)); err != nil {
			return err
		}
	}
	last := time.Time{}
	for len(c.streams) > 0 {
		if c.in.Buffered() == 0 {
			if err := c.out.Flush(); err != nil {
				return err
			}
			if now := time.Now(); now.Sub(last) > time.Second { // not each time, which costs as much as a request
				last = now
				if err := c.conn.SetReadDeadline(now.Add(10 * time.Second)); err != nil {
					return err
				}
			}
		}
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		complete, err := c.take(frame, a)
		if err != nil {
			return err
		}
		if complete && !over() {
			if err := c.ask(n, a.Ask(n)); err != nil {
				return err
			}
			n++
		}
	}
	return c.out.Flush()
}

// ask writes a request into the buffer.
func (c *Conn) ask(n int, message []byte) error {
	c.message = append(c.message[:0], 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(c.message[1:], uint32(len(message)))
	c.message = append(c.message, message...)
	if c.window -= int64(len(c.message)); c.window < 0 {
		return errors.New("unary: the service has not read what it was sent, and there is no room for another request")
	}
	c.block.Reset()
	for _, f := range c.fields {
		if err := c.encoder.WriteField(f); err != nil {
			return err
		}
	}
	id := c.next
	c.next += 2
	q := &query{}
	if last := len(c.idle) - 1; last >= 0 {
		q, c.idle = c.idle[last], c.idle[:last]
	}
	q.n, q.begin, q.body = n, time.Now(), q.body[:0]
	c.streams[id] = q
	if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	return c.framer.WriteData(id, true, c.message)
}

// take reads a frame, and reports whether an answer is complete with it.
func (c *Conn) take(frame http2.Frame, a Asks) (complete bool, err error) {
	id := frame.Header().StreamID
	switch f := frame.(type) {
	case *http2.DataFrame:
		q := c.streams[id]
		if q == nil || f.StreamEnded() {
			return false, errors.New("unary: there is data where none is expected")
		}
		q.body = append(q.body, f.Data()...)
		return false, c.credit(f.Length)
	case *http2.HeadersFrame:
		q := c.streams[id]
		if q == nil || !f.HeadersEnded() {
			return false, errors.New("unary: there are headers where none are expected, or too many")
		}
		c.status, c.reason = "", ""
		if _, err := c.decoder.Write(f.HeaderBlockFragment()); err != nil {
			return false, err
		}
		if f.StreamEnded() {
			return true, c.end(id, q, a)
		}
	case *http2.SettingsFrame:
		if f.IsAck() {
			return false, nil
		}
		if size, ok := f.Value(http2.SettingHeaderTableSize); ok {
			c.encoder.SetMaxDynamicTableSize(min(size, 4096))
		}
		return false, c.framer.WriteSettingsAck()
	case *http2.PingFrame:
		if !f.IsAck() {
			return false, c.framer.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		if id == 0 {
			c.window += int64(f.Increment)
		}
	case *http2.RSTStreamFrame:
		return false, fmt.Errorf("unary: the service has given up a request: %v", f.ErrCode)
	case *http2.GoAwayFrame:
		return false, fmt.Errorf("unary: the service has given up the connection: %v %s", f.ErrCode, f.DebugData())
	}
	return false, nil
}

// credit tells the service now and then that what it has sent was read.
func (c *Conn) credit(bytes uint32) error {
	if c.unread += bytes; c.unread < ourWindow/2 {
		return nil
	}
	err := c.framer.WriteWindowUpdate(0, c.unread)
	c.unread = 0
	return err
}

// end hands over a complete answer.
func (c *Conn) end(id uint32, q *query, a Asks) error {
	delete(c.streams, id)
	c.idle = append(c.idle, q)
	if c.status != "0" {
		return fmt.Errorf("unary: the service says %s: %s", c.status, c.reason)
	}
	if len(q.body) < prefix || q.body[0] != 0 || int(binary.BigEndian.Uint32(q.body[1:])) != len(q.body)-prefix {
		return fmt.Errorf("unary: %d bytes are not one message without compression", len(q.body))
	}
	return a.Answered(q.n, q.body[prefix:], time.Since(q.begin))
}
