package grpclimit

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// begin is where the clock of these tests stands, half a second after a whole one.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 500_000_000, time.UTC)

const (
	say  = "/test.v1.Echo/Say"
	chat = "/test.v1.Echo/Chat"
)

// bench is a real server and a real client, with a limiter between them, on a store
// that can be lost.
type bench struct {
	*Limiter
	client *grpc.ClientConn
	store  *losable
	served atomic.Int64 // calls and messages

	// onCall is what the handler of Say does besides, if anything.
	onCall func(ctx context.Context) error
	// onChat replaces the handler of Chat, which echoes.
	onChat func(ss grpc.ServerStream) error
}

// losable is a store that can be lost, or keep everybody waiting.
type losable struct {
	weir.Store
	lost, hangs atomic.Bool
}

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errors.New("the store is unavailable")
	}
	if l.hangs.Load() {
		<-ctx.Done()
		return dst, ctx.Err()
	}
	return l.Store.Take(ctx, dst, ops...)
}

// network is how the client reaches the server.
type network func(t testing.TB) (listen net.Listener, target string, dial func(context.Context, string) (net.Conn, error))

func tcp(t testing.TB) (net.Listener, string, func(context.Context, string) (net.Conn, error)) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listen, listen.Addr().String(), nil
}

func unix(t testing.TB) (net.Listener, string, func(context.Context, string) (net.Conn, error)) {
	path := filepath.Join(t.TempDir(), "s")
	listen, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return listen, "localhost", func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

func pipe(testing.TB) (net.Listener, string, func(context.Context, string) (net.Conn, error)) {
	listen := bufconn.Listen(1 << 16)
	return listen, "echo.example.com", func(ctx context.Context, _ string) (net.Conn, error) { return listen.DialContext(ctx) }
}

// stands is a clock that does.
func stands() weir.Micros { return weir.MicrosOf(begin) }

// newBench has the time stand still at begin, over TCP; newLiveBench has it go on, in a
// pipe, so that it can be fake.
func newBench(t testing.TB, rules string, o Options) *bench {
	t.Helper()
	return benchOn(t, rules, o, tcp, stands)
}

func newLiveBench(t testing.TB, rules string, o Options) *bench {
	t.Helper()
	return benchOn(t, rules, o, pipe, nil)
}

func benchOn(t testing.TB, rules string, o Options, over network, clock func() weir.Micros) *bench {
	t.Helper()
	b := &bench{store: &losable{Store: memory.New(memory.Options{Clock: clock})}}
	e, err := engine.New(engine.Options{Store: b.store, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(tableOf(t, rules), 1)
	if b.Limiter, err = New(e, o); err != nil {
		t.Fatal(err)
	}
	b.serve(t, over, grpc.ChainUnaryInterceptor(b.Unary()), grpc.ChainStreamInterceptor(b.Stream()))
	return b
}

// serve starts the server and connects the client, until the test is over.
func (b *bench) serve(t testing.TB, over network, options ...grpc.ServerOption) {
	t.Helper()
	listen, target, dial := over(t)
	server := grpc.NewServer(options...)
	server.RegisterService(&echo, b)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listen) }()
	dialing := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if dial != nil {
		dialing = append(dialing, grpc.WithContextDialer(dial))
	}
	client, err := grpc.NewClient("passthrough:///"+target, dialing...)
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	t.Cleanup(func() {
		client.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// echo is a service with a unary call and a stream in both directions.
var echo = grpc.ServiceDesc{
	ServiceName: "test.v1.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.StringValue)
		if err := decode(in); err != nil {
			return nil, err
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: say}
		return intercept(ctx, in, info, srv.(*bench).say)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: func(srv any, ss grpc.ServerStream) error {
		return srv.(*bench).chat(ss)
	}}},
}

func (b *bench) say(ctx context.Context, in any) (any, error) {
	b.served.Add(1)
	if b.onCall != nil {
		if err := b.onCall(ctx); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (b *bench) chat(ss grpc.ServerStream) error {
	if b.onChat != nil {
		return b.onChat(ss)
	}
	return b.echo(ss)
}

func (b *bench) echo(ss grpc.ServerStream) error {
	for {
		m := new(wrapperspb.StringValue)
		switch err := ss.RecvMsg(m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		b.served.Add(1)
		if err := ss.SendMsg(m); err != nil {
			return err
		}
	}
}

// answer is what the client sees of a call.
type answer struct {
	header, trailer metadata.MD
	err             error
	after           time.Duration
}

// call makes a unary call with metadata, pairs of names and values.
func (b *bench) call(ctx context.Context, pairs ...string) (a answer) {
	began := time.Now()
	out := new(wrapperspb.StringValue)
	ctx = metadata.AppendToOutgoingContext(ctx, pairs...)
	a.err = b.client.Invoke(ctx, say, wrapperspb.String("hello"), out, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.after = time.Since(began)
	return a
}

// open begins a stream.
func (b *bench) open(t testing.TB, ctx context.Context) grpc.ClientStream {
	t.Helper()
	s, err := b.client.NewStream(ctx, &echo.Streams[0], chat)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// exchange sends a message and waits for its echo.
func exchange(s grpc.ClientStream) error {
	if err := s.SendMsg(wrapperspb.String("hello")); err != nil && !errors.Is(err, io.EOF) {
		return err // EOF is that the server has ended it; RecvMsg tells why
	}
	return s.RecvMsg(new(wrapperspb.StringValue))
}

func tableOf(t testing.TB, rules string) *rule.Table {
	t.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// incoming are the metadata that the client sent.
func incoming(ctx context.Context) metadata.MD {
	md, _ := metadata.FromIncomingContext(ctx)
	return md
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
