package respapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// conn is one client. Between commands it has little more than a small buffer.
type conn struct {
	server *Server
	net    net.Conn
	client netip.Addr
	id     int64

	r     reader
	large budget.Item // the room of the buffer of r, if that is not small
	begun time.Time   // when the command began to arrive that is not complete; zero if there is none

	readBy, writeBy deadline

	name  string
	resp3 bool
	login login
	quit  bool // after what is answered already

	last       int // command, and how it was spelled
	spelled    [maxName]byte
	spelledLen int

	before numbersRead
	terms  terms // of the last limit, and what was made of them
	limit  *weir.Compiled
}

// work is the memory for answering a batch of commands. It is reused for the next one, of
// whatever connection.
type work struct {
	*conn
	writer
	verdict engine.Verdict
	demand  [1]engine.Demand
	limits  [1]*weir.Compiled
	asked   question
	tally   tally

	running  int  // the command
	answered int  // bytes of out before its answer
	follows  bool // the same command was answered just before
	waited   bool // and nothing was since then: the client was waited for
}

func newConn(s *Server, accepted net.Conn) *conn {
	c := &conn{server: s, net: accepted, id: s.lastID.Add(1)}
	if remote, err := netip.ParseAddrPort(accepted.RemoteAddr().String()); err == nil {
		c.client = remote.Addr().Unmap()
	}
	return c
}

// serve answers commands until the client leaves, or has to.
func (c *conn) serve() {
	defer c.server.forget(c)
	defer c.shrink()
	if secret, ok := c.net.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(c.server.closing, c.server.options.Patience)
		err := secret.HandshakeContext(ctx)
		cancel()
		if err != nil {
			return
		}
	}
	c.r.buf = make([]byte, smallBuffer)
	for c.receive() && c.answer() {
	}
}

// receive waits for more of what the client sends, and reports whether there is.
func (c *conn) receive() bool {
	room := c.r.room()
	if len(room) == 0 {
		if !c.grow() {
			return false
		}
		room = c.r.room()
	}
	from, wait := c.begun, c.server.options.Patience
	if from.IsZero() {
		from, wait = time.Now(), c.server.options.Idle
	}
	if at, move := c.readBy.move(from, wait); move && c.net.SetReadDeadline(at) != nil {
		return false
	}
	if c.server.closing.Err() != nil {
		return false // Shutdown sets its deadline after this one, or is seen here
	}
	n, err := c.net.Read(room)
	if c.r.end += n; len(c.r.buf) > smallBuffer {
		c.server.large.Progress(&c.large)
	}
	return n > 0 || err == nil
}

// deadline is that of a connection. To move it takes several times as long as to read the
// clock, so that it is moved a little too far, and then left alone for a while.
type deadline struct{ at time.Time }

// move sets the deadline to so long after an instant, or a sixteenth later. It returns whether
// that moves it.
func (d *deadline) move(from time.Time, wait time.Duration) (at time.Time, moved bool) {
	least, most := from.Add(wait), from.Add(wait+wait/16)
	if d.at.Before(least) || d.at.After(most) {
		d.at, moved = most, true
	}
	return d.at, moved
}

// answer answers all commands that are complete, and reports whether to wait for more.
func (c *conn) answer() (more bool) {
	w := c.server.work.Get().(*work)
	w.conn, w.writer.resp3 = c, c.resp3
	defer func() { // once for all commands
		if cause := recover(); cause != nil {
			w.crash(cause)
			more = false
		}
		w.release()
	}()
	for !c.quit {
		found, err := c.r.next()
		if err != nil {
			w.fail("ERR", "Protocol error: "+err.Error())
			w.flush()
			return false
		}
		if !found {
			break
		}
		w.run()
		c.r.consume()
		c.begun = time.Time{}
		if len(w.out) >= flushAt && !w.flush() {
			return false
		}
	}
	if !w.flush() || c.quit {
		return false
	}
	c.wait()
	return true
}

// wait prepares for more to come: of the command that was begun, or of another one.
func (c *conn) wait() {
	begun := c.r.end - c.r.start
	if begun <= smallBuffer {
		c.shrink()
	}
	if begun == 0 && cap(c.r.args) > maxArgs/16 {
		c.r.args = nil
	}
	if begun > 0 && c.begun.IsZero() {
		c.begun = time.Now()
	}
}

// grow doubles the buffer for a command that does not fit. Only a small buffer takes none of the
// room that all connections share.
func (c *conn) grow() bool {
	size, more := min(2*len(c.r.buf), maxCommand), 0
	if more = size; len(c.r.buf) > smallBuffer {
		more -= len(c.r.buf)
	}
	if !c.server.large.Grow(&c.large, c, int64(more), 0) {
		return false
	}
	c.r.resize(size)
	return true
}

// Client implements budget.Sender.
func (c *conn) Client() netip.Addr { return c.client }

// Abort implements budget.Sender. TLS would wait until the client knows.
func (c *conn) Abort() {
	if secret, ok := c.net.(*tls.Conn); ok {
		_ = secret.NetConn().Close()
	} else {
		_ = c.net.Close()
	}
}

// shrink gives back what a long command needed.
func (c *conn) shrink() {
	if len(c.r.buf) > smallBuffer {
		c.r.resize(smallBuffer)
		c.server.large.Release(&c.large)
	}
}

// flush sends the answers. A client that does not read them is not waited for long.
func (w *work) flush() bool {
	w.addTally() // who has an answer can see that it was counted
	w.waited = true
	if len(w.out) == 0 {
		return true
	}
	out := w.out
	w.out = w.out[:0]
	if at, move := w.writeBy.move(time.Now(), w.server.options.Patience); move && w.net.SetWriteDeadline(at) != nil {
		return false
	}
	_, err := w.net.Write(out)
	return err == nil
}

// release keeps nothing of these commands but the room that they took.
func (w *work) release() {
	s := w.server
	w.conn, w.demand[0], w.limits[0], w.asked = nil, engine.Demand{}, nil, question{}
	if w.out = w.out[:0]; cap(w.out) > keepOut {
		w.out = nil
	}
	s.work.Put(w)
}

// crash is the answer to a command that has panicked, and the last one on the connection.
func (w *work) crash(cause any) {
	id := manage.NewRequestID()
	w.server.options.Logger.Error("a command failed unexpectedly; please report this",
		"command", commands[w.running].name, "request_id", id, "cause", cause, "stack", string(debug.Stack()))
	w.reject(fault.Internal("the request ID " + id))
	w.count(w.running, 1)
	w.flush()
}
