package respapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit"
)

// A command that cannot be one is answered with an error, and the connection is closed:
// where the next one begins is not known.
func TestProtocolErrors(t *testing.T) {
	s := newStand(t, Options{})
	for text, want := range map[string]string{
		"*2147483647\r\n":                             "-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n$2147483647\r\n":                       fmt.Sprintf("-ERR Protocol error: the command has more than %d bytes\r\n", maxCommand),
		strings.Repeat("a", 5000):                     "-ERR Protocol error: too big inline request\r\n",
		array("PING") + "*1\r\n+PING\r\n":             "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n":  "-ERR This address is for Redis clients; send HTTP requests to the address of --http.\r\n",
		array("PING") + array("QUIT") + array("PING"): "+PONG\r\n+OK\r\n",
	} {
		c := s.dial(t)
		c.send(text)
		if got := c.isClosed(); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
	c := s.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := c.isClosed(); !strings.HasPrefix(got, "-ERR unknown command 'GET'") || !strings.HasSuffix(got, "--http.\r\n") {
		t.Errorf("GET: %q", got)
	}
}

// pipes is a listener in this process, so that time can be made to pass.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// inTime runs a test against a server with the usual options, in a time that passes when all
// wait. It is given a function that connects.
func inTime(t *testing.T, do func(t *testing.T, dial func() *line)) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s, err := New(Options{Service: manage.Service{Engine: e, Rules: struct{ repo.Repository }{}}})
		if err != nil {
			t.Fatal(err)
		}
		l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
		go s.Serve(l)
		do(t, func() *line {
			ours, its := net.Pipe()
			l.accept <- its
			return &line{t, ours, bufio.NewReader(ours)}
		})
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// isAbout reports whether a client was given up when it should be: a deadline may come a
// sixteenth late, but never early.
func isAbout(took, patience time.Duration) bool {
	return patience <= took && took <= patience+patience/16+time.Second
}

// Clients that begin a command and do not end it, or send nothing, are not waited for.
func TestSlowClients(t *testing.T) {
	for text, patience := range map[string]time.Duration{
		"": time.Hour, "PING\r\n": time.Hour,
		"*3\r\n$3\r\nSET\r\n": 30 * time.Second, "*1\r\n$100000\r\nabc": 30 * time.Second, "PI": 30 * time.Second,
		array("PING") + "*1": 30 * time.Second, "*1\r\n$100000\r\n" + strings.Repeat("x", 50_000): 30 * time.Second,
	} {
		inTime(t, func(t *testing.T, dial func() *line) {
			start := time.Now()
			c := dial()
			go c.Write([]byte(text)) // the pipe waits for the reader
			c.isClosed()
			if took := time.Since(start); !isAbout(took, patience) {
				t.Errorf("%.20q: %v, want %v", text, took, patience)
			}
		})
	}
}

// One that sends a byte now and then has begun long ago all the same.
func TestDrippingClient(t *testing.T) {
	inTime(t, func(t *testing.T, dial func() *line) {
		start := time.Now()
		c := dial()
		c.send("*1\r\n$100000\r\n")
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(start); !isAbout(took, 30*time.Second) {
			t.Errorf("it took %v", took)
		}
	})
}

// One that does not read its answers is cut off.
func TestDeafClient(t *testing.T) {
	inTime(t, func(t *testing.T, dial func() *line) {
		start := time.Now()
		c := dial()
		for {
			if _, err := io.WriteString(c, array("ECHO", "x")); err != nil {
				break
			}
		}
		if took := time.Since(start); !isAbout(took, 30*time.Second) {
			t.Errorf("it took %v", took)
		}
	})
}

// One that is quiet, but not for too long, may stay.
func TestQuietClient(t *testing.T) {
	inTime(t, func(t *testing.T, dial func() *line) {
		c := dial()
		for range 100 {
			time.Sleep(59 * time.Minute)
			if got := c.do("PING"); got != "PONG" {
				t.Fatalf("got %v", got)
			}
		}
		c.Close()
	})
}

// A client that is always in the middle of a command, but ends each, may stay.
func TestBusyClient(t *testing.T) {
	inTime(t, func(t *testing.T, dial func() *line) {
		c := dial()
		one := array("ECHO", strings.Repeat("x", 10_000))
		c.send(one[:5000])
		for range 100 {
			time.Sleep(20 * time.Second)
			go c.Write([]byte(one[5000:] + one[:5000]))
			if got := c.read(); len(got.(string)) != 10_000 {
				t.Fatalf("got %v", got)
			}
		}
		c.Close()
	})
}

// However many connect, whatever they send and do not read: the server needs little memory.
func TestHostileMemory(t *testing.T) {
	s := newStand(t, Options{})
	half := "*2\r\n$4\r\nECHO\r\n$130000\r\n" + strings.Repeat("x", 129_000)
	flood := strings.Repeat(array("WEIR.CHECK", "user", "alice", "results", "1"), 200)
	conns := make([]net.Conn, 150)
	for i := range conns {
		conns[i] = s.dial(t)
	}
	peak := testkit.Peak(func() {
		var wg sync.WaitGroup
		for i, c := range conns {
			wg.Go(func() {
				c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)) // the server does not read all of it
				if i > 20 {
					io.WriteString(c, half)
				} else {
					io.WriteString(c, flood)
				}
			})
		}
		wg.Wait()
	})
	if limit := uint64(3*maxLarge + 150*(smallBuffer+4*flushAt)); peak > limit {
		t.Errorf("%d MB were in use; at most %d are expected", peak>>20, limit>>20)
	}
}

// Clients that begin long commands and do not end them make place for others that do.
func TestUnfinishedCommands(t *testing.T) {
	s := newStand(t, Options{})
	half := "*2\r\n$4\r\nECHO\r\n$130000\r\n" + strings.Repeat("x", 100_000)
	var wg sync.WaitGroup
	defer wg.Wait()
	for range 150 {
		c := s.dial(t)
		wg.Go(func() { io.WriteString(c, half) })
	}
	for deadline := time.Now().Add(time.Minute); s.large.Free() > maxLarge/4; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the commands take no room")
		}
	}
	long := strings.Repeat("y", 100_000)
	if got := s.dial(t).do("ECHO " + long); got != long {
		t.Errorf("%.100v", got)
	}
}

// A connection keeps nothing of a long command, not even a password that nobody asked for.
func TestIdleMemory(t *testing.T) {
	s := newStand(t, Options{})
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what a pool has goes with the second one
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	lines := make([]*line, 100)
	for i := range lines {
		lines[i] = s.dial(t)
	}
	before, long := used(), strings.Repeat("x", 130_000)
	for _, c := range lines {
		c.do("AUTH " + long)
		c.do("HELLO 2 AUTH default " + long)
	}
	if grown := int64(used()) - int64(before); grown > 4<<20 {
		t.Errorf("%d connections keep %d KiB", len(lines), grown>>10)
	}
	for _, c := range lines {
		c.do("PING")
	}
}

// A web page that tries again and again does not fill the log.
func TestHTTPIsLoggedOnce(t *testing.T) {
	s := newStand(t, Options{})
	for range 3 {
		c := s.dial(t)
		c.send("POST / HTTP/1.1\r\n")
		c.isClosed()
	}
	if n := strings.Count(s.log.String(), "HTTP request"); n != 1 {
		t.Errorf("the log has %d lines: %s", n, s.log.String())
	}
}

// Beyond the maximum, clients are told so, and those who are there are answered.
func TestTooManyConnections(t *testing.T) {
	s := newStand(t, Options{MaxConnections: 20})
	lines := make([]*line, 20)
	for i := range lines {
		lines[i] = s.dial(t)
		lines[i].do("PING")
	}
	for range 50 {
		if got := s.dial(t).isClosed(); got != "-ERR max number of clients reached\r\n" {
			t.Fatalf("got %q", got)
		}
	}
	for _, c := range lines {
		c.do("PING")
	}
	if got := s.Traffic(); got.Rejected != 50 || got.Connected != 20 {
		t.Errorf("got %+v", got)
	}
	lines[0].do("QUIT")
	lines[0].isClosed()
	if got := s.dial(t).do("PING"); got != "PONG" {
		t.Errorf("when one has left: %v", got)
	}
}

// Long commands take turns for the memory that there is.
func TestLongCommands(t *testing.T) {
	s := newStand(t, Options{})
	var wg sync.WaitGroup
	for range 200 {
		c := s.dial(t)
		wg.Go(func() {
			text := strings.Repeat("x", 100_000)
			c.send(array("ECHO", text))
			if got := c.read(); got != text {
				t.Errorf("got %.20v", got)
			}
			if got := c.do("PING"); got != "PONG" {
				t.Errorf("got %v", got)
			}
		})
	}
	wg.Wait()
	if s.large.Free() != maxLarge {
		t.Error("not all of the memory was given back")
	}
}
