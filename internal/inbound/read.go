package inbound

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/budget"
)

// source is where the library itself reads messages. It promises less: TestSource fails
// if a version of it has no such methods, and then messages are bounded by
// grpc.MaxRecvMsgSize alone before they are read.
type source interface {
	ReadMessageHeader([]byte) error
	Read(int) (mem.BufferSlice, error)
}

// call is a call whose messages are read.
type call struct {
	guard   *Guard
	ctx     context.Context
	decode  func(any) error // as the library does
	plan    *atomic.Pointer[plan]
	several bool  // messages may come
	taken   int64 // of what may be decoded

	window, long budget.Item // of what arrives
}

// Client implements budget.Sender.
func (c *call) Client() netip.Addr {
	if p, ok := peer.FromContext(c.ctx); ok {
		if tcp, ok := p.Addr.(*net.TCPAddr); ok {
			return tcp.AddrPort().Addr()
		}
	}
	return netip.Addr{}
}

// Abort implements budget.Sender: it ends a call whose message does not come to its end.
func (c *call) Abort() {
	if end, ok := c.ctx.Value(endKey{}).(context.CancelFunc); ok {
		end()
	}
}

// end gives back the room of what was decoded.
func (c *call) end() {
	if c.taken > 0 {
		c.guard.decoded.Give(c.taken)
		c.taken = 0
	}
}

// readMessage reads a message.
func (c *call) readMessage(into any) error {
	message, ok := into.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "weir: %T is no message", into)
	}
	if !c.guard.options.Reads(c.ctx) {
		return nil
	}
	from, ok := grpc.ServerTransportStreamFromContext(c.ctx).(source)
	if !ok {
		return c.decode(into)
	}
	p := c.plan.Load()
	if p == nil {
		p = c.guard.planOf(message.ProtoReflect().Descriptor())
		c.plan.Store(p)
	}
	data, err := c.receive(from, p)
	if err != nil {
		return err
	}
	defer data.Free()
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return c.unmarshal(buffer.ReadOnlyData(), message, p)
}

// receive waits for a message, and that it is the only one, if it has to be.
func (c *call) receive(from source, p *plan) (data mem.BufferSlice, err error) {
	if !c.several {
		defer c.guard.windows.Release(&c.window)
		if !c.guard.windows.Grow(&c.window, c, Window, 0) {
			return nil, errBusy
		}
	}
	var head [5]byte
	if err := from.ReadMessageHeader(head[:]); err != nil {
		if err == io.EOF && c.several {
			return nil, err
		}
		return nil, broken(err)
	}
	length := int64(binary.BigEndian.Uint32(head[1:]))
	switch {
	case head[0] != 0:
		return nil, status.Error(codes.Unimplemented, "weir: compressed messages are not read; send them without compression")
	case length > int64(p.Bytes):
		return nil, status.Errorf(codes.ResourceExhausted, "weir: the message has %d bytes, and for this call at most %d are read; send less", length, p.Bytes)
	}
	defer c.guard.large.Release(&c.long)
	for left := length; left > 0; left -= min(left, Window) {
		if len(data) > 0 && !c.guard.large.Grow(&c.long, c, Window, left) {
			err = errBusy
		}
		var more mem.BufferSlice
		if err == nil {
			more, err = from.Read(int(min(left, Window)))
		}
		if err != nil {
			data.Free()
			return nil, broken(err)
		}
		data = append(data, more...)
		c.guard.windows.Progress(&c.window)
	}
	if !c.several {
		if err := atEnd(from); err != nil {
			data.Free()
			return nil, err
		}
	}
	return data, nil
}

// unmarshal decodes a message, if it may have what is in it, and as soon as there is room.
func (c *call) unmarshal(data []byte, into proto.Message, p *plan) error {
	if err := p.check(data, 1); err != nil {
		return err
	}
	n := max(int64(len(data)), leastCall)
	if err := c.takeRoom(c.guard.decoded, n); err != nil {
		return err
	}
	c.taken = n
	if err := proto.Unmarshal(data, into); err != nil {
		return status.Errorf(codes.Internal, "weir: the message cannot be decoded: %v", err)
	}
	return nil
}

// takeRoom takes room, and waits for it only a while.
func (c *call) takeRoom(r *budget.Room, n int64) error {
	if r.Try(n) {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.guard.options.Wait)
	defer cancel()
	if err := r.Take(ctx, n); err != nil {
		return errBusy
	}
	return nil
}

var errBusy = status.Error(codes.Unavailable, "weir: other calls need too much memory just now; try again")

// endable is a context that can be ended from where the message is received.
type endable struct {
	context.Context
	end context.CancelFunc
}

type endKey struct{}

// Value implements context.Context.
func (e *endable) Value(key any) any {
	if key == (endKey{}) {
		return e.end
	}
	return e.Context.Value(key)
}

// Endable is for a grpc.InTapHandle. The context that it returns there lets the guard give
// up a call, by a function that ends the context.
func Endable(ctx context.Context, end context.CancelFunc) context.Context { return &endable{ctx, end} }

// atEnd is an error if there is more than one message.
func atEnd(from source) error {
	var head [5]byte
	switch err := from.ReadMessageHeader(head[:]); err {
	case io.EOF:
		return nil
	case nil:
		return status.Error(codes.Internal, "weir: there is more than one message, and the method takes one")
	default:
		return broken(err)
	}
}

// broken is why a message did not come to its end.
func broken(err error) error {
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return status.Error(codes.Internal, "weir: the call ended before its message did")
	case status.Code(err) != codes.Unknown:
		return err
	}
	return status.FromContextError(err).Err()
}
