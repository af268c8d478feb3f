package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// foreign is somebody else's program that runs until the test is over.
type foreign struct {
	cmd    *exec.Cmd
	log    *log
	exited chan struct{}
}

// run starts a program, and waits until it listens on all addresses.
func run(t *testing.T, dir, path string, args, listens []string) *foreign {
	t.Helper()
	f := &foreign{cmd: exec.Command(path, args...), log: &log{}, exited: make(chan struct{})}
	f.cmd.Dir, f.cmd.Stdout, f.cmd.Stderr = dir, f.log, f.log
	f.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	f.cmd.SysProcAttr = attr()
	started := make(chan error)
	go func() {
		defer close(f.exited)
		// Linux takes the death of the thread for that of the parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := f.cmd.Start()
		started <- err
		if err == nil {
			f.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(path), f.log)
		}
	})
	for _, address := range listens {
		waitFor(t, filepath.Base(path)+" at "+address, func() bool {
			select {
			case <-f.exited:
				t.Fatalf("%s ended", path)
			default:
			}
			network := "tcp"
			if filepath.IsAbs(address) {
				network = "unix"
			}
			c, err := net.Dial(network, address)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return f
}

func (f *foreign) kill() {
	f.cmd.Process.Kill()
	<-f.exited
}

// program finds a program. Daemons are where the PATH of most users does not lead.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := exec.LookPath(filepath.Join("/usr/sbin", name))
	if err != nil {
		t.Fatalf("%s is not installed; make test does that", name)
	}
	return path
}

// Ports of programs that come back after their end are below those that systems give
// to outgoing connections, and beside those of the tests with Redis.
const (
	firstPort = 30000
	ports     = 2700
)

// nextPort goes round, so that no port is given twice; it begins anywhere, so that
// two runs seldom meet.
var nextPort atomic.Int64

func init() { nextPort.Store(rand.Int64N(ports)) }

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range ports {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+nextPort.Add(1)%ports)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// adopt copies a file of examples/proxies into a directory, with some of it replaced:
// old, new, old, new. What is to be replaced has to be there.
func adopt(t *testing.T, dir, file string, replaced ...string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("../../examples/proxies", file))
	if err != nil {
		t.Fatal(err)
	}
	text := string(src)
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(text, replaced[i]) {
			t.Fatalf("%s does not have %q", file, replaced[i])
		}
		text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
	}
	return write(t, dir, filepath.Base(file), text)
}

// application is what the proxies stand in front of. It says what it was asked for.
type application struct {
	*httptest.Server
	served atomic.Int64
	last   atomic.Value // the URI that it was asked for last
}

func newApplication(t *testing.T) *application {
	a := &application{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.last.Store(r.RequestURI)
		a.served.Add(1)
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/forbidden":
			w.WriteHeader(http.StatusForbidden)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintf(w, "%s %s for %s: %s", r.Method, r.RequestURI, r.Header.Get("X-Forwarded-For"), body)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *application) address() string { return a.Listener.Addr().String() }

// patience is how long a client waits for an answer: long for a busy machine, and
// short beside a hang.
const patience = time.Minute

// clientFrom is a client with an address of its own.
func clientFrom(ip string) *http.Client {
	transport := &http.Transport{DialContext: dialerFrom(ip).DialContext, DisableCompression: true, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Timeout: patience}
}

func dialerFrom(ip string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: patience}
}

// sendRaw writes bytes as they are, and returns the status line of the answer, or ""
// if the other side hung up.
func sendRaw(t *testing.T, from, address, text string) string {
	t.Helper()
	c, err := dialerFrom(from).Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, text) // who does not want to read all of it hangs up
	answer, err := io.ReadAll(c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Fatalf("no answer to %.60q", text)
	}
	text = strings.TrimPrefix(string(answer), "HTTP/1.1 100 Continue\r\n\r\n")
	line, _, _ := strings.Cut(text, "\r\n")
	return line
}
