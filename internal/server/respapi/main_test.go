package respapi

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

const testRules = `
rules:
  - {id: login, match: {method: POST, path: /login}, key: ip, algorithm: sliding_log, limit: 2/1m, deny: {code: 10007, message: too many logins}}
  - {id: api, match: {path: /api/**}, key: user, limit: 100/1m, tiers: {pro: 1000/1m}}
  - {id: tenant, key: "header:X-Tenant", limit: 50/1m, mode: shadow}
  - {id: session, key: [cookie:lang, query:page], limit: 3/1m}
  - {id: action, match: {attributes: {action: post}}, key: attr:action, limit: 5/1m}
  - {id: tokens, match: {path: /llm}, key: user, limit: 1000/1m, unit: tokens}
block: {ip: [203.0.113.66]}
`

// stand is a server over a real engine, whose clock stands still until it is moved.
type stand struct {
	*Server
	now    atomic.Int64 // microseconds
	engine *engine.Engine
	addr   string
	log    record
	served chan error
}

func (s *stand) micros() weir.Micros   { return weir.Micros(s.now.Load()) }
func (s *stand) move(by time.Duration) { s.now.Add(by.Microseconds()) }

// record is a log that several goroutines write.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func newStand(t testing.TB, o Options) *stand {
	t.Helper()
	s := &stand{served: make(chan error, 1)}
	s.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	if o.Engine == nil {
		o.Engine = s.newEngine(t)
	}
	s.engine = o.Engine
	o.Rules, o.Version = struct{ repo.Repository }{}, "test"
	o.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	o.Limits.Clock = s.micros
	var err error
	if s.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	go func() { s.served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
		if err := <-s.served; err != nil {
			t.Error(err)
		}
	})
	return s
}

type uninterested struct{}

func (uninterested) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

func (s *stand) newEngine(t testing.TB) *engine.Engine {
	t.Helper()
	return newEngine(t, memory.Options{Clock: s.micros})
}

func newEngine(t testing.TB, o memory.Options) *engine.Engine {
	t.Helper()
	set, problems := rule.Parse("", []byte(testRules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{
		Store: memory.New(o), Clock: o.Clock,
		Observers: []engine.Observer{uninterested{}}, // without any, the engine times nothing
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.Install(table, 1)
	return e
}

// tokens are one of each scope.
func tokens(t testing.TB) func() *trust.List {
	t.Helper()
	list, err := trust.ParseTokens([]byte("reader read " + token("r") + "\napp use " + token("u") + "\nboss admin " + token("a") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return func() *trust.List { return list }
}

func token(letter string) string { return strings.Repeat(letter, 32) }

// guarded is a service with tokens.
func guarded(t testing.TB) Options {
	return Options{Service: manage.Service{Tokens: tokens(t)}}
}

// line is a connection to the server.
type line struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (s *stand) dial(t testing.TB) *line {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &line{t, c, bufio.NewReader(c)}
}

// array is a command as clients send it.
func array(args ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return text
}

func (l *line) send(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l, text); err != nil {
		l.t.Fatal(err)
	}
}

// do sends a command and returns its answer. Words are separated by spaces.
func (l *line) do(command string) any {
	l.t.Helper()
	l.send(array(strings.Fields(command)...))
	return l.read()
}

func (l *line) read() any {
	l.t.Helper()
	answer, err := parse(l.in)
	if err != nil {
		l.t.Fatal(err)
	}
	return answer
}

// isClosed waits for the end of the connection, and returns what came before.
func (l *line) isClosed() string {
	l.t.Helper()
	rest, _ := io.ReadAll(l.in) // a reset is an end, too
	return string(rest)
}

// failure is an answer that is an error.
type failure string

// pair is an entry of a map of RESP3.
type pair struct{ name, value any }

// parse reads an answer.
func parse(in *bufio.Reader) (any, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := head[0], strings.TrimSuffix(head[1:], "\r\n")
	switch kind {
	case '+':
		return text, nil
	case '-':
		return failure(text), nil
	case '_':
		return nil, nil
	case '#':
		return text == "t", nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	switch kind {
	case ':':
		return n, nil
	case '$':
		if n < 0 {
			return nil, nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(in, body)
		return string(body[:n]), err
	case '*':
		all := make([]any, n)
		for i := range all {
			if all[i], err = parse(in); err != nil {
				return nil, err
			}
		}
		return all, nil
	case '%':
		all := make([]pair, n)
		for i := range all {
			if all[i].name, err = parse(in); err != nil {
				return nil, err
			}
			if all[i].value, err = parse(in); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("an answer begins with %q", head)
}
