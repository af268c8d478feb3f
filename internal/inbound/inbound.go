// Package inbound bounds what a gRPC server takes in.
//
// The library reads a message of any method up to one size, decompresses it if some
// package of the program has registered how, and decodes it, before anybody is asked. Here
// each type of message has a bound of its own, in bytes and in messages within it. A message
// that is longer is rejected before it is read, one with more before it is decoded, and one
// that is compressed in either case. What is being received and what is decoded at the same
// time has to fit into rooms that all calls share.
package inbound

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/internal/budget"
)

// Window is how many bytes of a message may arrive before anybody reads it.
const Window = 64 << 10

// ServerOptions lets at most a Window of a message arrive before the message is read.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.StaticStreamWindowSize(Window), grpc.StaticConnWindowSize(4 << 20)}
}

// Bound is how large a message may be.
type Bound struct {
	Bytes int // at the top; within another, that one's Bytes hold
	Parts int // messages directly in it, with entries of maps and of lists of texts
	All   int // the same at any depth; 0 is no bound
}

// usual is the bound on message types without their own bound.
var usual = Bound{Bytes: 16 << 10, Parts: 8}

// Options of a guard.
type Options struct {
	// Bounds are those of types of messages, by their full names. Others have 16 KiB and
	// 8 parts.
	Bounds map[protoreflect.FullName]Bound

	// Large is how many bytes of messages beyond a Window one client may send at once, and all
	// together a third more; and Decoded is how many bytes of messages may have been decoded and not answered yet. A
	// call counts as 2 KiB at least.
	Large, Decoded int64

	// Wait is how long a call waits for room for what is decoded. Default 2 s.
	Wait time.Duration

	// Reads is whether the message of a call is read at all. If not, the method is called
	// with an empty one, and has to reject by itself. Default always.
	Reads func(context.Context) bool
}

const (
	maxReceiving = 1024    // calls of which up to a Window has arrived
	leastCall    = 2 << 10 // bytes that a call takes at least
)

// Guard keeps the calls of some services within bounds.
type Guard struct {
	options        Options
	windows, large *budget.Inbox // of what arrives: a Window of each call, and what is beyond
	decoded        *budget.Room
}

// New returns a guard.
func New(o Options) *Guard {
	if o.Reads == nil {
		o.Reads = func(context.Context) bool { return true }
	}
	o.Wait = cmp.Or(o.Wait, 2*time.Second)
	return &Guard{options: o, windows: budget.NewInbox(maxReceiving * Window), large: budget.NewInbox(o.Large * 4 / 3), decoded: budget.New(o.Decoded)}
}

// Registrar registers services with another one so that their calls go by the guard.
func (g *Guard) Registrar(r grpc.ServiceRegistrar) grpc.ServiceRegistrar { return registrar{g, r} }

type registrar struct {
	guard *Guard
	next  grpc.ServiceRegistrar
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(d *grpc.ServiceDesc, service any) {
	own := *d
	own.Methods = make([]grpc.MethodDesc, len(d.Methods))
	for i, m := range d.Methods {
		own.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: r.guard.method(m.Handler)}
	}
	own.Streams = make([]grpc.StreamDesc, len(d.Streams))
	for i, s := range d.Streams {
		own.Streams[i] = s
		own.Streams[i].Handler = r.guard.stream(s.Handler, s.ClientStreams)
	}
	r.next.RegisterService(&own, service)
}

// method lets a method read its message by the guard.
func (g *Guard) method(next grpc.MethodHandler) grpc.MethodHandler {
	var known atomic.Pointer[plan]
	return func(service any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		c := &call{guard: g, ctx: ctx, decode: decode, plan: &known}
		defer c.end()
		return next(service, ctx, c.readMessage, intercept)
	}
}

// stream lets a stream read its messages by the guard.
func (g *Guard) stream(next grpc.StreamHandler, several bool) grpc.StreamHandler {
	var known atomic.Pointer[plan]
	return func(service any, s grpc.ServerStream) error {
		c := &call{guard: g, ctx: s.Context(), decode: s.RecvMsg, plan: &known, several: several}
		defer c.end()
		return next(service, bounded{s, c})
	}
}

// bounded is a stream whose messages are read by the guard.
type bounded struct {
	grpc.ServerStream
	call *call
}

// RecvMsg implements grpc.ServerStream.
func (b bounded) RecvMsg(m any) error {
	b.call.end() // of the message before
	return b.call.readMessage(m)
}

// RemoteOf returns the address of a call's connection, for clientip. A connection
// without an address, such as a pipe within the process, has none; it does not count as
// this machine.
func RemoteOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	switch {
	case !ok || p.Addr == nil:
		return "unknown"
	case p.Addr.Network() == "unix":
		return "@"
	}
	return p.Addr.String()
}

// Proxied are the metadata that proxies write, as headers; nil if there are none.
func Proxied(md metadata.MD) http.Header {
	plain, standard := md["x-forwarded-for"], md["forwarded"]
	if len(plain) == 0 && len(standard) == 0 {
		return nil
	}
	return http.Header{"X-Forwarded-For": plain, "Forwarded": standard}
}

// plan is what may be in a message of one type.
type plan struct {
	Bound
	name protoreflect.FullName
	at   []*plan // by the number of a field, if that is a message or a list of texts
}

// planOf makes the plan of a type.
func (g *Guard) planOf(d protoreflect.MessageDescriptor) *plan {
	return g.plan(d, map[protoreflect.FullName]*plan{})
}

func (g *Guard) plan(d protoreflect.MessageDescriptor, made map[protoreflect.FullName]*plan) *plan {
	if p := made[d.FullName()]; p != nil {
		return p
	}
	p := &plan{Bound: usual, name: d.FullName()}
	if b, ok := g.options.Bounds[p.name]; ok {
		p.Bound = b
	}
	made[p.name] = p
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		texts := f.IsList() && (f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind)
		if f.Message() == nil && !texts {
			continue
		}
		for len(p.at) <= int(f.Number()) {
			p.at = append(p.at, nil)
		}
		if texts {
			p.at[f.Number()] = text
		} else {
			p.at[f.Number()] = g.plan(f.Message(), made)
		}
	}
	return p
}

// text is what stands for the plan of a text.
var text = new(plan)

// maxDepth is how deep messages may be within each other.
const maxDepth = 16

// check counts the messages in a message that is not decoded yet. What is wrong with it
// otherwise is found by who decodes it.
func (p *plan) check(b []byte, depth int) error {
	_, err := p.count(b, depth)
	return err
}

func (p *plan) count(b []byte, depth int) (all int, err error) {
	parts := 0
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return all, nil
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return all, nil
		}
		value := b[:n]
		b = b[n:]
		if int(number) >= len(p.at) || p.at[number] == nil {
			continue
		}
		if parts++; parts > p.Parts {
			return all, status.Errorf(codes.InvalidArgument, "weir: a %s has more than %d parts; send fewer", p.name, p.Parts)
		}
		all++
		if inner := p.at[number]; kind == protowire.BytesType && inner != text {
			if depth == maxDepth {
				return all, status.Errorf(codes.InvalidArgument, "weir: messages are nested deeper than %d levels; send less", maxDepth)
			}
			content, _ := protowire.ConsumeBytes(value)
			below, err := inner.count(content, depth+1)
			if all += below; err != nil {
				return all, err
			}
		}
		if p.All > 0 && all > p.All {
			return all, status.Errorf(codes.InvalidArgument, "weir: a %s has more than %d parts in all; send fewer", p.name, p.All)
		}
	}
	return all, nil
}
