package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// parrot is a service of one method that answers each message at once, and ends as the
// client wishes.
var parrot = grpc.ServiceDesc{
	ServiceName: "test.Parrot",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{StreamName: "Talk", ClientStreams: true, ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
		in, _ := metadata.FromIncomingContext(s.Context())
		s.SetTrailer(metadata.Pairs("x-late", "trailer", "x-te", strings.Join(in["x-ask"], ",")))
		for {
			var m wrapperspb.StringValue
			if err := s.RecvMsg(&m); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if m.Value == "fail" {
				return status.Error(codes.FailedPrecondition, "as you wish")
			}
			if err := s.SendMsg(wrapperspb.String("you said " + m.Value)); err != nil {
				return err
			}
		}
	}}},
}

func TestGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := grpc.NewServer()
	service.RegisterService(&parrot, nil)
	served := make(chan error, 1)
	go func() { served <- service.Serve(l) }()
	t.Cleanup(func() { service.Stop(); <-served })

	b := newStand(t, setup{
		rules: "rules: [{id: few, key: ip, algorithm: sliding_log, limit: 2/1h}]",
		server: func(s *httptest.Server) {
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetHTTP1(true)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
		},
	}, "h2c://"+l.Addr().String())
	conn, err := grpc.NewClient(b.server.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	talk := func() grpc.ClientStream {
		t.Helper()
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-ask", "meta"), patience)
		t.Cleanup(cancel)
		s, err := conn.NewStream(ctx, &parrot.Streams[0], "/test.Parrot/Talk")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	say := func(s grpc.ClientStream, text string) (string, error) {
		if err := s.SendMsg(wrapperspb.String(text)); err != nil && err != io.EOF {
			return "", err
		}
		var m wrapperspb.StringValue
		err := s.RecvMsg(&m)
		return m.Value, err
	}

	s := talk()
	for i := range 3 { // each is answered before the next is said
		if got, err := say(s, fmt.Sprint(i)); err != nil || got != fmt.Sprint("you said ", i) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	h, err := s.Header()
	if err != nil || len(h["x-ratelimit-remaining"]) != 1 || h["x-ratelimit-remaining"][0] != "1" {
		t.Errorf("headers %v, %v", h, err)
	}
	s.CloseSend()
	if err := s.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
	if late := s.Trailer(); fmt.Sprint(late["x-late"], late["x-te"]) != "[trailer] [meta]" {
		t.Errorf("trailers %v", late)
	}

	if _, err := say(talk(), "fail"); status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "as you wish" {
		t.Errorf("the failure became %v", err)
	}
	if _, err := say(talk(), "again"); status.Code(err) != codes.Unavailable {
		t.Errorf("a third call was not denied: %v", err)
	}
}
