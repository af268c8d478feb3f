package main

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a terminal, seen from where the person sits.
type pty struct {
	t              *testing.T
	person, weir   *os.File
	mu             sync.Mutex
	shown          bytes.Buffer
	more           chan struct{} // something was shown
	readerFinished chan struct{}
}

func newPTY(t *testing.T, width, height uint16) *pty {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	weir, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, person: person, weir: weir, more: make(chan struct{}, 1), readerFinished: make(chan struct{})}
	p.resize(width, height)
	go p.read()
	t.Cleanup(func() {
		weir.Close()
		<-p.readerFinished // nothing is left to read, which is an error
		person.Close()
	})
	return p
}

func (p *pty) read() {
	defer close(p.readerFinished)
	block := make([]byte, 4096)
	for {
		n, err := p.person.Read(block)
		p.mu.Lock()
		p.shown.Write(block[:n])
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *pty) resize(width, height uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) mode() unix.Termios {
	p.t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.weir.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *mode
}

func (p *pty) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// until waits until something was shown, and forgets all before its end. It returns what
// stood before it.
func (p *pty) until(text string) string {
	p.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		p.mu.Lock()
		if i := strings.Index(p.shown.String(), text); i >= 0 {
			before := string(p.shown.Next(i + len(text))[:i])
			p.mu.Unlock()
			return before
		}
		p.mu.Unlock()
		select {
		case <-p.more:
		case <-late:
			p.t.Fatalf("%q is never shown; there is\n%q", text, p.all())
		}
	}
}

// top starts weir top at the terminal.
func (p *pty) top(args ...string) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		var stderr strings.Builder
		code := run(append([]string{"top"}, args...), p.weir, p.weir, &stderr)
		ended <- outcome{code: code, stderr: stderr.String()}
	}()
	return ended
}

// gone checks how it ended, and that the terminal is as it was.
func (p *pty) gone(ended <-chan outcome, before unix.Termios) {
	p.t.Helper()
	select {
	case got := <-ended:
		got.want(p.t, 0, "", "")
	case <-time.After(2 * time.Minute):
		p.t.Fatal("it does not end")
	}
	p.until(leaveScreen)
	if after := p.mode(); !reflect.DeepEqual(after, before) {
		p.t.Errorf("the terminal is not as it was: %+v, before %+v", after, before)
	}
}

func TestTopLive(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	r := serveStats(t, loginAndAPI)
	r.busy(t)
	p := newPTY(t, 80, 24)
	before := p.mode()
	for name, leave := range map[string]func(){
		"q":       func() { p.person.WriteString("xq") },
		"Ctrl-C":  func() { p.person.WriteString("\x03") },
		"SIGINT":  func() { unix.Kill(os.Getpid(), unix.SIGINT) },
		"SIGTERM": func() { unix.Kill(os.Getpid(), unix.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			ended := p.top("--server", r.URL, "--interval", "100ms")
			p.until(enterScreen)
			p.until(toTheTop + "\x1b[1mweir top\x1b[0m")
			p.until("\x1b[31m        25\x1b[0m  ip:203.0.113.7")
			p.until("q: quit")
			if mode := p.mode(); mode.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
				t.Error("keys are shown, or wait for a line")
			}
			leave()
			p.gone(ended, before)
		})
	}
}

// It fills the screen, also another one, and says when there is no news.
func TestTopLiveTrouble(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	r := serveStats(t, loginAndAPI)
	r.busy(t)
	p := newPTY(t, 80, 24)
	before := p.mode()
	ended := p.top("--server", r.URL, "--interval", "100ms")
	p.until(enterScreen + toTheTop + "weir top")
	frame := func() []string {
		t.Helper()
		p.until(toTheTop)
		p.until(toTheTop) // it is whole then
		all := p.all()
		if i := strings.Index(all, restBelow); i >= 0 {
			all = all[:i]
		} else {
			p.until(restBelow)
			return nil
		}
		return strings.Split(all, "\r\n")
	}
	p.resize(100, 30)
	unix.Kill(os.Getpid(), unix.SIGWINCH)
	for lines := frame(); len(lines) != 30; lines = frame() {
		if len(lines) != 24 && lines != nil {
			t.Fatalf("there are %d lines", len(lines))
		}
	}
	if strings.Contains(p.all(), "\x1b[3") {
		t.Error("there are colours, but NO_COLOR is set")
	}
	r.CloseClientConnections()
	p.until("no update, next try at ")
	p.until("closed the connection")
	p.until("q: quit") // it is back
	p.person.WriteString("q")
	p.gone(ended, before)
}

// A terminal that has another size is drawn on at once.
func TestTopLiveResized(t *testing.T) {
	t.Setenv("TERM", "xterm")
	r := serveStats(t, loginAndAPI)
	p := newPTY(t, 80, 24)
	before := p.mode()
	ended := p.top("--server", r.URL, "--interval", "1h")
	p.until("q: quit")
	p.resize(100, 30)
	unix.Kill(os.Getpid(), unix.SIGWINCH)
	for n := 0; n != 29; {
		p.until(toTheTop)
		if n = strings.Count(p.until("q: quit"), "\r\n"); n != 29 && n != 23 { // once more as it was
			t.Fatalf("it is drawn again with %d lines", n+1)
		}
	}
	p.person.WriteString("q")
	p.gone(ended, before)
}

// What is no terminal to draw on gets one screen.
func TestTopNotLive(t *testing.T) {
	r := serveStats(t, loginAndAPI)
	p := newPTY(t, 100, 5)
	for name, c := range map[string]struct {
		term string
		args []string
	}{"dumb": {"dumb", nil}, "once": {"xterm", []string{"--once"}}} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			t.Setenv("TERM", c.term)
			t.Setenv("NO_COLOR", "")
			(<-p.top(append(c.args, "--server", r.URL)...)).want(t, 0, "", "")
			p.until("weir top")
			p.until("decisions")
			p.until("\n")
			if strings.Contains(p.all(), "\x1b[?") {
				t.Errorf("it draws: %q", p.all())
			}
		})
	}
}
