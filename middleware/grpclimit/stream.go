package grpclimit

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Stream returns an interceptor for streams.
func (l *Limiter) Stream() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := ss.Context()
		if l.passes(ctx, info.FullMethod) {
			return handler(srv, ss)
		}
		s := &stream{ServerStream: ss, ctx: context.WithValue(ctx, mark{l.engine}, true), limiter: l, call: new(call)}
		l.readCall(ctx, s.call, info.FullMethod)
		md, err := l.judge(ctx, s.call, l.front.Reserve)
		if err != nil {
			ss.SetTrailer(md)
			return err
		}
		_ = ss.SetHeader(md) // it fails only where there is no client to read it
		s.fields = md
		s.served = l.serve(s.call)
		return l.run(s.ctx, info.FullMethod, s.call.verdict.Priority, s.served, func(ctx context.Context) error {
			s.ctx = ctx
			err := handler(srv, s)
			fields, denial := s.last()
			s.SetTrailer(fields)
			if denial != nil {
				return denial // whatever the handler made of it
			}
			return err
		})
	}
}

// stream charges for the messages that a client sends, if that is wanted.
type stream struct {
	grpc.ServerStream
	ctx     context.Context
	limiter *Limiter
	served  *served // nil if nothing is to be done at the end

	// Used only by the goroutine that receives; there is one at a time.
	call *call
	paid bool // for the first message

	mu     sync.Mutex
	fields metadata.MD // of the last checked message
	denial error       // of a message
}

func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg receives the next message. One that is denied is the last: its handler gets
// the denial as an error, and so does the client.
func (s *stream) RecvMsg(m any) error {
	if !s.limiter.options.PerMessage {
		return s.ServerStream.RecvMsg(m)
	}
	if _, denial := s.last(); denial != nil {
		return denial
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if !s.paid {
		s.paid = true
		return nil
	}
	md, err := s.limiter.judge(s.ctx, s.call, s.limiter.front.Gate.Continue)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fields, s.denial = md, err
	return err
}

// SendMsg sends the next message.
func (s *stream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.served.sent(m)
	}
	return err
}

func (s *stream) last() (metadata.MD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fields, s.denial
}
