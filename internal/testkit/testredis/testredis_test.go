package testredis

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// rejected checks that a command fails with these words.
func rejected(t *testing.T, s *Server, want string, args ...string) {
	t.Helper()
	if reply, err := s.TryDo(args...); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s = %q, %v; want %s", strings.Join(args, " "), reply, err, want)
	}
}

// answered checks a reply.
func answered(t *testing.T, s *Server, want string, args ...string) {
	t.Helper()
	if got := s.Do(args...); got != want {
		t.Errorf("%s = %q, want %q", strings.Join(args, " "), got, want)
	}
}

func TestDo(t *testing.T) {
	s := Start(t)
	answered(t, s, "OK", "SET", "k", "two\r\nlines")
	answered(t, s, "two\r\nlines", "GET", "k")
	answered(t, s, "", "GET", "nothing")
	answered(t, s, "3", "RPUSH", "l", "a", "", "c")
	answered(t, s, "a\n\nc", "LRANGE", "l", "0", "-1")
	answered(t, s, "", "LRANGE", "l", "5", "9")
	answered(t, s, "1\nx\ny", "EVAL", "return {1, {'x', 'y'}}", "0")
	rejected(t, s, "WRONGTYPE", "GET", "l")
	rejected(t, s, "ERR unknown command", "NONSENSE")
}

func TestScriptsAreForgotten(t *testing.T) {
	s := Start(t)
	sha := s.Do("SCRIPT", "LOAD", "return 7")
	s.Do("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 8 end)")
	answered(t, s, "7", "EVALSHA", sha, "0")
	answered(t, s, "8", "FCALL", "f", "0")
	s.FlushScripts()
	rejected(t, s, "NOSCRIPT", "EVALSHA", sha, "0")
	rejected(t, s, "ERR Function not found", "FCALL", "f", "0")
}

func TestMemory(t *testing.T) {
	s := Start(t)
	s.Do("SET", "k", "v")
	s.FillMemory()
	rejected(t, s, "OOM", "SET", "k", "w")
	answered(t, s, "v", "GET", "k")
	s.FreeMemory()
	answered(t, s, "OK", "SET", "k", "w")
}

func TestPause(t *testing.T) {
	s := Start(t)
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Pause()
	if s.up() {
		t.Error("a paused server is up")
	}
	fmt.Fprint(c, "PING\r\n")
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	reply := make([]byte, 10)
	if n, err := c.Read(reply); !os.IsTimeout(err) {
		t.Errorf("a paused server answered %q, %v", reply[:n], err)
	}
	s.Resume()
	c.SetReadDeadline(time.Now().Add(patience))
	if n, err := c.Read(reply); err != nil || string(reply[:n]) != "+PONG\r\n" {
		t.Errorf("a resumed server answered %q, %v", reply[:n], err)
	}
	s.Pause() // and so it is left to the clean-up
}

func TestRestart(t *testing.T) {
	s := Start(t)
	s.Do("SET", "k", "v")
	s.Kill()
	s.Kill() // once more does no harm
	if _, err := s.TryDo("PING"); err == nil {
		t.Error("a dead server answers")
	}
	addr := s.Addr
	s.Restart()
	if s.Addr != addr {
		t.Errorf("it came back at %s instead of %s", s.Addr, addr)
	}
	answered(t, s, "", "GET", "k")
	s.Pause()
	s.Restart()
	answered(t, s, "PONG", "PING")
}

func TestArguments(t *testing.T) {
	s := Start(t, "--requirepass", "secret", "--maxclients", "77")
	answered(t, s, "maxclients\n77", "CONFIG", "GET", "maxclients")
	s.Do("SET", "k", "v")
	stranger := &Server{Addr: s.Addr}
	rejected(t, stranger, "NOAUTH", "GET", "k")
	answered(t, Replica(t, s), "v", "GET", "k")
}

func TestReplica(t *testing.T) {
	master := Start(t)
	master.Do("SET", "k", "v")
	replica := Replica(t, master)
	answered(t, replica, "v", "GET", "k")
	rejected(t, replica, "READONLY", "SET", "k", "w")
	master.Do("FLUSHALL")
	master.Kill()
	replica.Restart() // it would have the old data, had it kept the file
	answered(t, replica, "0", "DBSIZE")
}

func TestTLS(t *testing.T) {
	s, caFile := StartTLS(t)
	answered(t, s, "PONG", "PING")
	if text, err := os.ReadFile(caFile); err != nil || !strings.HasPrefix(string(text), "-----BEGIN CERTIFICATE-----") {
		t.Errorf("the authority's file is %q, %v", text, err)
	}
	if s.TLS() == nil || Start(t).TLS() != nil {
		t.Error("TLS says the wrong thing")
	}
	if _, err := (&Server{Addr: s.Addr}).TryDo("PING"); err == nil {
		t.Error("it speaks plainly")
	}
}

// The parent that a server must not outlive is the process, not the thread that
// asked for it.
func TestServerOutlivesThread(t *testing.T) {
	s := newServer(t)
	s.Addr, _ = FreeAddr()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		started <- s.run()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	for range 100 { // it is unknown when a thread has ended, but it takes no longer
		if _, err := s.TryDo("PING"); err != nil {
			t.Fatal(err)
		}
	}
}

// A test that is killed takes its servers along. It is this test in another process.
func TestServerDiesWithTest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux sees to it")
	}
	const name = "TESTREDIS_ADDRESS_FILE"
	if file := os.Getenv(name); file != "" {
		s := Start(t)
		s.Pause() // the hardest case: it cannot do anything itself
		if err := os.WriteFile(file, []byte(s.Addr), 0o600); err != nil {
			t.Fatal(err)
		}
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithTest$")
	child.Env = append(os.Environ(), name+"="+dir+"/addr", "TMPDIR="+dir)
	if out, err := child.CombinedOutput(); err == nil {
		t.Fatalf("the child was not killed:\n%s", out)
	}
	addr, err := os.ReadFile(dir + "/addr")
	if err != nil {
		t.Fatal(err)
	}
	err = await(func() error {
		if !isFree(string(addr)) {
			return fmt.Errorf("%s is still in use", addr)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The port that a server was to have may be gone; a stranger's answer is not its own.
func TestPortTaken(t *testing.T) {
	first := Start(t)
	second := newServer(t)
	second.Addr = first.Addr
	if err := second.run(); err == nil || second.up() {
		t.Errorf("a second server on %s started: %v", first.Addr, err)
	}
	launch(t, second)
	if second.Addr == first.Addr {
		t.Error("two servers have one address")
	}
	answered(t, second, "PONG", "PING")
}
