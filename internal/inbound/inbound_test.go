package inbound

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
)

func serve(t *testing.T, g *Guard) healthpb.HealthClient {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(ServerOptions()...)
	healthpb.RegisterHealthServer(g.Registrar(server), health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return healthpb.NewHealthClient(conn)
}

// The library's own stream still lets messages be measured before they are read.
func TestSource(t *testing.T) {
	client := serve(t, New(Options{Large: 1 << 20, Decoded: 1 << 20}))
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: strings.Repeat("a", 20_000)})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "weir: the message has 20004 bytes") {
		t.Errorf("the message was read, or the error is another: %v", err)
	}
	watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: strings.Repeat("a", 20_000)})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "weir: the message has 20004 bytes") {
		t.Errorf("the message of a stream was read, or the error is another: %v", err)
	}
}

// Who is not to be read is called with an empty message.
func TestReads(t *testing.T) {
	client := serve(t, New(Options{Large: 1 << 20, Decoded: 1 << 20, Reads: func(context.Context) bool { return false }}))
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "there is none such"}); err != nil {
		t.Errorf("the message was read: %v", err)
	}
}

// What is decoded and not answered yet takes room, and gives it back.
func TestDecoded(t *testing.T) {
	g := New(Options{Large: 1 << 20, Decoded: 1 << 20, Wait: 1})
	client := serve(t, g)
	if !g.decoded.Try(1<<20 - leastCall) {
		t.Fatal("there is no room to begin with")
	}
	for range 3 {
		if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Error(err)
		}
	}
	g.decoded.Try(leastCall)
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("without room: %v", err)
	}
}

// Messages that contain each other are counted up to a depth.
func TestDepth(t *testing.T) {
	g := New(Options{})
	p := g.planOf((&structpb.Value{}).ProtoReflect().Descriptor())
	var data []byte
	for range 100 { // a list of a value of a list of a value
		data = append([]byte{0x0a, byte(len(data)), byte(len(data) >> 7)}, data...)
		data[1] |= 0x80
		data = append([]byte{0x32, byte(len(data)), byte(len(data) >> 7)}, data...)
		data[1] |= 0x80
	}
	if err := p.check(data, 1); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "deeper than 16") {
		t.Error(err)
	}
}

// Entries of a list of texts count as messages do, and All counts at any depth.
func TestParts(t *testing.T) {
	mask := (&fieldmaskpb.FieldMask{}).ProtoReflect().Descriptor()
	list := (&structpb.ListValue{}).ProtoReflect().Descriptor()
	g := New(Options{Bounds: map[protoreflect.FullName]Bound{
		mask.FullName(): {Parts: 3}, list.FullName(): {Parts: 100, All: 5},
	}})
	nested := structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewBoolValue(true), structpb.NewBoolValue(true)}})
	for _, c := range []struct {
		message proto.Message
		want    codes.Code
	}{
		{&fieldmaskpb.FieldMask{Paths: []string{"a", "b", "\x0a\x00\x0a\x00"}}, codes.OK},
		{&fieldmaskpb.FieldMask{Paths: []string{"", "", "", ""}}, codes.InvalidArgument},
		{&structpb.ListValue{Values: []*structpb.Value{nested, structpb.NewBoolValue(true)}}, codes.OK}, // a value, its list, and two in it; a value
		{&structpb.ListValue{Values: []*structpb.Value{nested, nested}}, codes.InvalidArgument},
	} {
		data, err := proto.Marshal(c.message)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.planOf(c.message.ProtoReflect().Descriptor()).check(data, 1); status.Code(err) != c.want {
			t.Errorf("%v: %v, want %s", c.message, err, c.want)
		}
	}
}
