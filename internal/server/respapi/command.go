package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// command is something that a client can send.
type command struct {
	name        string // in lower case
	least, most int    // arguments, the name included; most is 0 if there may be any number
	key         bool   // the first argument is a key
	about       string // for COMMAND DOCS
	run         func(*work) error
}

// commands are all of them; the last one stands for those that are unknown.
var (
	commands []command
	byName   = map[string]int{}
)

func init() { // COMMAND is one of them, and describes them
	commands = []command{
		{"cl.throttle", 1, 0, true, "Takes units of a limit that the command describes, as redis-cell does.", (*work).throttle},

		{"weir.check", 1, 0, false, "Decides a request by the rules, and charges it.", (*work).check},
		{"weir.peek", 1, 0, false, "Tells how WEIR.CHECK would decide a request, and charges nothing.", (*work).peek},
		{"weir.reserve", 1, 0, false, "Decides a request and charges an estimate, until WEIR.SETTLE tells the actual cost.", (*work).reserve},
		{"weir.settle", 1, 0, false, "Ends a hold with the units that were used.", (*work).settle},
		{"weir.cancel", 1, 0, false, "Ends a hold of which nothing was used.", (*work).cancel},
		{"weir.extend", 1, 0, false, "Lets a hold expire later.", (*work).extend},
		{"weir.reset", 1, 0, false, "Clears the usage of a client.", (*work).reset},

		{"auth", 2, 3, false, "Tells who the client is, by a token.", (*work).auth},
		{"client", 2, 0, false, "Tells and asks about this connection.", (*work).clientCommand},
		{"command", 1, 0, false, "Describes the commands.", (*work).commandCommand},
		{"echo", 2, 2, false, "Returns its argument.", (*work).echo},
		{"hello", 1, 0, false, "Selects the version of the protocol.", (*work).hello},
		{"info", 1, 0, false, "Describes the server.", (*work).info},
		{"ping", 1, 2, false, "Returns PONG.", (*work).ping},
		{"quit", 1, 0, false, "Closes the connection.", (*work).quitCommand},
		{"reset", 1, 1, false, "Makes the connection as good as a new one.", (*work).resetCommand},
		{"select", 2, 2, false, "Accepts database 0, which is the only one.", (*work).selectCommand},

		{"(unknown)", 1, 0, false, "", (*work).unknown},
	}
	for i, c := range commands[:len(commands)-1] {
		byName[c.name] = i
	}
}

// maxName is the longest name of a command.
const maxName = 16

// lookup finds a command, in upper or lower case.
func lookup(name []byte) int {
	var room [maxName]byte
	if len(name) <= maxName {
		lower := room[:len(name)]
		for i, b := range name {
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			lower[i] = b
		}
		if i, ok := byName[string(lower)]; ok {
			return i
		}
	}
	return len(commands) - 1
}

// command finds the command that was read, which is mostly spelled as the one before it.
func (c *conn) command() int {
	name := c.r.arg(0)
	if len(name) == 0 || !bytes.Equal(name, c.spelled[:c.spelledLen]) {
		c.last, c.spelledLen = lookup(name), 0
		if len(name) <= maxName {
			c.spelledLen = copy(c.spelled[:], name)
		}
	}
	return c.last
}

// tally counts answers until they are sent: all connections share the counters, and two
// processors that count at the same time wait for each other.
type tally struct {
	command, kind int
	n             uint64
}

func (w *work) count(command, kind int) {
	if w.tally.command != command || w.tally.kind != kind {
		w.addTally()
		w.tally.command, w.tally.kind = command, kind
	}
	w.tally.n++
}

func (w *work) addTally() {
	if t := &w.tally; t.n > 0 {
		w.server.stats.answered[t.command][t.kind].Add(t.n)
		t.n = 0
	}
}

// stats count what was answered.
type stats struct {
	answered [][2]atomic.Uint64 // by command: without an error, and with one
	rejected atomic.Uint64      // connections, because there were too many
}

// run answers the command that was read.
func (w *work) run() {
	at := w.command()
	w.follows = at == w.running && !w.waited
	w.running, w.waited, w.answered = at, false, len(w.out)
	c := &commands[at]
	var err error
	if n := len(w.r.args); n < c.least || c.most > 0 && n > c.most {
		err = arity(c.name)
	} else {
		err = c.run(w)
	}
	kind := 0
	if err != nil {
		w.reject(err)
		kind = 1
	}
	w.count(at, kind)
}

// arity is what Redis says of too few arguments, or too many.
func arity(name string) error { return fails("wrong number of arguments for '%s' command", name) }

// unknown is what Redis says of a command that it does not know.
func (w *work) unknown() error {
	name := w.r.arg(0)
	if bytes.EqualFold(name, []byte("POST")) || bytes.EqualFold(name, []byte("Host:")) {
		// A web page can make a browser send that, with commands in the body.
		if now, last := time.Now().Unix(), w.server.warned.Load(); now-last >= 60 && w.server.warned.CompareAndSwap(last, now) { // each costs only a connection
			w.server.options.Logger.Warn("an HTTP request came to the address for Redis clients; the connection is closed", "client", w.client.String())
		}
		w.quit = true
		return fails("This address is for Redis clients; send HTTP requests to the address of --http.")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "unknown command '%.128s', with args beginning with: ", name)
	for i := 1; i < len(w.r.args) && text.Len() < 256; i++ {
		fmt.Fprintf(&text, "'%.128s' ", w.r.arg(i))
	}
	return fails("%s", text.String())
}

// Count is how often a command was answered.
type Count struct {
	Command string // in lower case; "(unknown)" for others
	Failed  bool   // with an error
	Total   uint64
}

// Traffic is what the server has done.
type Traffic struct {
	Connected int    // clients
	Rejected  uint64 // connections, because there were too many
	Commands  []Count
}

// Traffic returns what the server has done. Commands that were never sent are left out.
func (s *Server) Traffic() Traffic {
	t := Traffic{Connected: s.connected(), Rejected: s.stats.rejected.Load()}
	for i := range commands {
		for kind := range s.stats.answered[i] {
			if n := s.stats.answered[i][kind].Load(); n > 0 {
				t.Commands = append(t.Commands, Count{commands[i].name, kind == 1, n})
			}
		}
	}
	return t
}
