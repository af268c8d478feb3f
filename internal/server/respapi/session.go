package respapi

import (
	"bytes"
	"fmt"
	"strings"
)

// speaks is the version of Redis by which clients decide what they can send.
const speaks = "7.4.0"

// maxClientName is the longest name of a connection, in bytes.
const maxClientName = 128

func (w *work) ping() error {
	if len(w.r.args) == 2 {
		return w.echo()
	}
	w.simple("PONG")
	return nil
}

func (w *work) echo() error {
	w.bytes(w.r.arg(1))
	return nil
}

func (w *work) quitCommand() error {
	w.simple("OK")
	w.quit = true
	return nil
}

// resetCommand forgets what the connection was told.
func (w *work) resetCommand() error {
	w.name, w.login = "", login{}
	w.speak(2)
	w.simple("RESET")
	return nil
}

func (w *work) selectCommand() error {
	switch db, ok := integer(w.r.arg(1)); {
	case !ok:
		return fails("value is not an integer or out of range")
	case db != 0:
		return fails("DB index is out of range")
	}
	w.simple("OK")
	return nil
}

// auth takes a token as a password; the user is of no importance.
func (w *work) auth() error {
	err := w.authenticate(string(w.r.arg(len(w.r.args) - 1)))
	if err == nil {
		w.simple("OK")
	}
	return err
}

// speak sets the version of the protocol, from the next answer on.
func (w *work) speak(version int64) {
	w.conn.resp3 = version == 3
	w.writer.resp3 = w.conn.resp3
}

// hello answers HELLO [version [AUTH user token] [SETNAME name]]. Nothing changes if
// anything is wrong.
func (w *work) hello() error {
	version := int64(2)
	if w.conn.resp3 {
		version = 3
	}
	args := w.r.args
	if len(args) > 1 {
		var ok bool
		if version, ok = integer(w.r.arg(1)); !ok {
			return fails("Protocol version is not an integer or out of range")
		}
		if version != 2 && version != 3 {
			return &redisError{"NOPROTO", "unsupported protocol version"}
		}
	}
	name, token := w.name, ""
	for i := 2; i < len(args); {
		switch option := w.r.arg(i); {
		case bytes.EqualFold(option, []byte("AUTH")) && i+2 < len(args):
			token = string(w.r.arg(i + 2))
			i += 3
		case bytes.EqualFold(option, []byte("SETNAME")) && i+1 < len(args):
			name = string(w.r.arg(i + 1))
			i += 2
		default:
			return fails("Syntax error in HELLO option '%.128s'", option)
		}
	}
	err := checkName(name)
	if err == nil && token != "" {
		err = w.authenticate(token)
	}
	if err != nil {
		return err
	}
	w.name = name
	w.speak(version)
	w.Object("")
	w.Text("server", "weir")
	w.Text("version", speaks)
	w.Int("proto", version)
	w.Int("id", w.id)
	w.Text("mode", "standalone")
	w.Text("role", "master")
	w.List("modules", 0)
	w.End(false)
	return nil
}

// checkName is an error unless a connection can have the name.
func checkName(name string) error {
	switch {
	case len(name) > maxClientName:
		return fails("The name has %d bytes; the maximum is %d.", len(name), maxClientName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' }):
		return fails("Client names cannot contain spaces, newlines or special characters.")
	}
	return nil
}

// clientCommand answers CLIENT. What only concerns caches, evictions and statistics of
// Redis makes no difference here: there is nothing that a client could cache.
func (w *work) clientCommand() error {
	sub, n := strings.ToUpper(string(w.r.arg(1))), len(w.r.args)
	switch {
	case sub == "ID" && n == 2:
		w.integer(w.id)
	case sub == "GETNAME" && n == 2 && w.name == "":
		w.null()
	case sub == "GETNAME" && n == 2:
		w.text(w.name)
	case sub == "SETNAME" && n == 3:
		name := string(w.r.arg(2))
		if err := checkName(name); err != nil {
			return err
		}
		w.name = name
		w.simple("OK")
	case sub == "SETINFO" && n == 4, sub == "TRACKING" && n > 2, sub == "NO-EVICT" && n == 3, sub == "NO-TOUCH" && n == 3, sub == "CAPA" && n > 2:
		w.simple("OK")
	case sub == "ID" || sub == "GETNAME" || sub == "SETNAME" || sub == "SETINFO" || sub == "TRACKING" || sub == "NO-EVICT" || sub == "NO-TOUCH" || sub == "CAPA":
		return arity("client|" + strings.ToLower(sub))
	default:
		return fails("unknown subcommand '%.128s'. Try CLIENT HELP.", w.r.arg(1))
	}
	return nil
}

// info describes the server in the form that clients parse.
func (w *work) info() error {
	w.text(fmt.Sprintf("# Server\r\nserver_name:weir\r\nweir_version:%s\r\nredis_version:%s\r\nredis_mode:standalone\r\n\r\n"+
		"# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
		w.server.options.Version, speaks, w.server.connected(), w.server.options.MaxConnections))
	return nil
}

// commandCommand answers COMMAND.
func (w *work) commandCommand() error {
	all := commands[:len(commands)-1]
	if n := len(w.r.args); n == 1 || n == 2 && bytes.EqualFold(w.r.arg(1), []byte("INFO")) {
		w.array(len(all))
		for i := range all {
			w.describe(&all[i])
		}
		return nil
	}
	if names := len(w.r.args) - 2; names > len(all) { // the answer would be many times as long
		return fails("COMMAND has %d names, and there are %d commands; send fewer.", names, len(all))
	}
	switch sub := strings.ToUpper(string(w.r.arg(1))); sub {
	case "COUNT":
		w.integer(int64(len(all)))
	case "LIST":
		w.array(len(all))
		for i := range all {
			w.text(all[i].name)
		}
	case "DOCS":
		chosen := w.chosen()
		w.dict(len(chosen))
		for _, c := range chosen {
			w.text(c.name)
			w.Object("")
			w.Text("summary", c.about)
			w.Text("group", "module")
			w.End(false)
		}
	case "INFO":
		w.array(len(w.r.args) - 2)
		for i := 2; i < len(w.r.args); i++ {
			if at := lookup(w.r.arg(i)); at < len(all) {
				w.describe(&all[at])
			} else {
				w.null()
			}
		}
	default:
		return fails("unknown subcommand '%.128s'. Try COMMAND HELP.", w.r.arg(1))
	}
	return nil
}

// chosen are the known ones of the commands that COMMAND DOCS names; without a name, all.
func (w *work) chosen() []*command {
	var chosen []*command
	for i := range commands[:len(commands)-1] {
		if len(w.r.args) == 2 {
			chosen = append(chosen, &commands[i])
		}
	}
	for i := 2; i < len(w.r.args); i++ {
		if at := lookup(w.r.arg(i)); at < len(commands)-1 {
			chosen = append(chosen, &commands[at])
		}
	}
	return chosen
}

// describe writes a command as Redis does: name, number of arguments, flags, and where its
// keys are.
func (w *work) describe(c *command) {
	arity := int64(c.least)
	if c.most != c.least {
		arity = -arity
	}
	w.array(6)
	w.text(c.name)
	w.integer(arity)
	w.array(1)
	w.simple("fast")
	keys := int64(0)
	if c.key {
		keys = 1
	}
	w.integer(keys)
	w.integer(keys)
	w.integer(keys)
}
