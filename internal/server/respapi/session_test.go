package respapi

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// What clients send when they connect, and what Redis would answer.
func TestSession(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	for _, step := range []struct {
		command string
		want    any
	}{
		{"PING", "PONG"},
		{"ping hello", "hello"},
		{"PING a b", failure("ERR wrong number of arguments for 'ping' command")},
		{"ECHO x", "x"},
		{"ECHO", failure("ERR wrong number of arguments for 'echo' command")},
		{"SELECT 0", "OK"},
		{"SELECT 1", failure("ERR DB index is out of range")},
		{"SELECT x", failure("ERR value is not an integer or out of range")},
		{"CLIENT GETNAME", nil},
		{"CLIENT SETNAME web-1", "OK"},
		{"CLIENT GETNAME", "web-1"},
		{"CLIENT SETINFO LIB-NAME x", "OK"},
		{"CLIENT SETINFO LIB-NAME", failure("ERR wrong number of arguments for 'client|setinfo' command")},
		{"CLIENT TRACKING ON OPTIN", "OK"},
		{"CLIENT NO-EVICT ON", "OK"},
		{"CLIENT ID", int64(1)},
		{"CLIENT MAINT_NOTIFICATIONS ON", failure("ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.")},
		{"AUTH anything", "OK"}, // no token is asked for
		{"COMMAND COUNT", int64(len(commands) - 1)},
		{"COMMAND INFO echo nothing", []any{[]any{"echo", int64(2), []any{"fast"}, int64(0), int64(0), int64(0)}, nil}},
		{"COMMAND INFO cl.throttle", []any{[]any{"cl.throttle", int64(-1), []any{"fast"}, int64(1), int64(1), int64(1)}}},
		{"COMMAND DOCS ping nothing", []any{"ping", []any{"summary", "Returns PONG.", "group", "module"}}},
		{"COMMAND INFO" + strings.Repeat(" echo", len(commands)), failure(fmt.Sprintf("ERR COMMAND has %d names, and there are %d commands; send fewer.", len(commands), len(commands)-1))},
		{"COMMAND DOCS" + strings.Repeat(" echo", len(commands)), failure(fmt.Sprintf("ERR COMMAND has %d names, and there are %d commands; send fewer.", len(commands), len(commands)-1))},
		{"COMMAND GETKEYS x", failure("ERR unknown subcommand 'GETKEYS'. Try COMMAND HELP.")},
		{"FLUSHALL now", failure("ERR unknown command 'FLUSHALL', with args beginning with: 'now' ")},
		{"HELLO 4", failure("NOPROTO unsupported protocol version")},
		{"HELLO x", failure("ERR Protocol version is not an integer or out of range")},
		{"HELLO 3 SETNAME", failure("ERR Syntax error in HELLO option 'SETNAME'")},
		{"HELLO 3 AUTH a", failure("ERR Syntax error in HELLO option 'AUTH'")},
		{"HELLO", []any{"server", "weir", "version", speaks, "proto", int64(2), "id", int64(1), "mode", "standalone", "role", "master", "modules", []any{}}},
		{"HELLO 3 SETNAME again", []pair{{"server", "weir"}, {"version", speaks}, {"proto", int64(3)}, {"id", int64(1)}, {"mode", "standalone"}, {"role", "master"}, {"modules", []any{}}}},
		{"CLIENT GETNAME", "again"},
		{"RESET", "RESET"},
		{"CLIENT GETNAME", nil},
		{"COMMAND DOCS echo", []any{"echo", []any{"summary", "Returns its argument.", "group", "module"}}},
		{"QUIT", "OK"},
	} {
		if got := c.do(step.command); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: got %#v, want %#v", step.command, got, step.want)
		}
	}
	if rest := c.isClosed(); rest != "" {
		t.Errorf("after QUIT came %q", rest)
	}

	c = s.dial(t)
	c.send(array("CLIENT", "SETNAME", "a\nb"))
	if got := c.read(); got != failure("ERR Client names cannot contain spaces, newlines or special characters.") {
		t.Errorf("a name with a line break: %v", got)
	}
	c.send(array("a\r\nb"))
	if got := c.read(); got != failure("ERR unknown command 'a  b', with args beginning with: ") {
		t.Errorf("a command with a line break: %v", got)
	}
	if got := c.do("HELLO 3"); len(got.([]pair)) != 7 {
		t.Errorf("HELLO 3: %v", got)
	}
	if got := c.do("CLIENT GETNAME"); got != nil {
		t.Errorf("no name: %v", got)
	}
	info := fmt.Sprint(c.do("INFO server"))
	for _, want := range []string{"redis_version:" + speaks + "\r\n", "weir_version:test\r\n", "loading:0\r\n", "connected_clients:1\r\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO has no %q: %s", want, info)
		}
	}
}

// COMMAND lists what the reference describes.
func TestCommand(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	all, names := c.do("COMMAND").([]any), c.do("COMMAND LIST").([]any)
	if len(all) != len(commands)-1 || len(names) != len(all) || !reflect.DeepEqual(c.do("COMMAND INFO"), c.do("COMMAND")) {
		t.Fatalf("%d commands, %d names", len(all), len(names))
	}
	for i := range all {
		if all[i].([]any)[0] != names[i] {
			t.Errorf("%v is not %v", all[i], names[i])
		}
		if len(names[i].(string)) > maxName {
			t.Errorf("%s is too long to be found", names[i])
		}
	}
	c.do("PING")
	c.do("nothing")
	want := []Count{{"command", false, 4}, {"ping", false, 1}, {"(unknown)", true, 1}}
	if got := s.Traffic(); got.Connected != 1 || !reflect.DeepEqual(got.Commands, want) {
		t.Errorf("got %+v", got)
	}
}

// Answers come in the order of the commands, however many are sent at once.
func TestPipeline(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	const many = 3000
	go func() {
		var all strings.Builder
		for i := range many {
			all.WriteString(array("ECHO", fmt.Sprint(i)))
			if i%7 == 0 {
				all.WriteString("PING\r\n")
			}
		}
		c.Write([]byte(all.String()))
	}()
	for i := range many {
		if got := c.read(); got != fmt.Sprint(i) {
			t.Fatalf("got %v, want %d", got, i)
		}
		if i%7 == 0 && c.read() != "PONG" {
			t.Fatal("no PONG")
		}
	}
}
