package respapi

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/bearer"
)

// Anybody may ask about a request. To bring one's own limits takes a token for
// applications, and to change what others have used one of an administrator.
func TestAccess(t *testing.T) {
	s := newStand(t, guarded(t))
	for _, step := range []struct{ as, command, want string }{
		{"", "WEIR.CHECK user alice", "[allowed"},
		{"", "WEIR.PEEK user alice", "[allowed"},
		{"", "PING", "PONG"},
		{"", "CL.THROTTLE k 1 2 3", "NOAUTH Authentication required."},
		{"", "WEIR.RESET key user:a", "NOAUTH Authentication required."},
		{"r", "CL.THROTTLE k 1 2 3", "NOPERM The token of reader has the scope read; use one with the scope use."},
		{"r", "WEIR.RESET key user:a", "NOPERM The token of reader has the scope read; use one with the scope admin."},
		{"u", "CL.THROTTLE k 1 2 3", "[0 2 1 -1 2]"},
		{"u", "WEIR.RESET key user:a", "NOPERM The token of app has the scope use; use one with the scope admin."},
		{"a", "CL.THROTTLE k 1 2 3", "[0 2 0 -1 3]"},
		{"a", "WEIR.RESET key user:a", "[key user:a"},
	} {
		for _, login := range []string{"AUTH %s", "AUTH anybody %s", "HELLO 2 AUTH default %s"} {
			c := s.dial(t)
			if step.as != "" {
				if got := c.do(fmt.Sprintf(login, token(step.as))); got != "OK" && !strings.HasPrefix(fmt.Sprint(got), "[server") {
					t.Fatalf("%s: %v", login, got)
				}
			}
			want := step.want
			if strings.HasPrefix(want, "[0 2") {
				want = "[" // how much is left depends on those before
			}
			if got := c.do(step.command); !strings.HasPrefix(fmt.Sprint(got), want) {
				t.Errorf("%s as %q: got %v, want %s", step.command, step.as, got, want)
			}
			c.do("RESET")
			if got := c.do("CL.THROTTLE k 1 2 3"); got != fault("NOAUTH Authentication required.") {
				t.Errorf("after RESET: %v", got)
			}
		}
	}
	if log := s.log.String(); strings.Contains(log, token("a")) || !strings.Contains(log, `"management call" method=WEIR.RESET code=OK holder=boss`) {
		t.Errorf("the log: %s", log)
	}
}

// Nobody finds a token by trying.
func TestWrongTokens(t *testing.T) {
	s := newStand(t, guarded(t))
	c := s.dial(t)
	if got := c.do("HELLO 3 AUTH default wrong-wrong-wrong-wrong-wrong-wrong"); got != fault("WRONGPASS The server does not know this token; use one from its token file.") {
		t.Fatalf("HELLO: %v", got)
	}
	for range 9 {
		if got := c.do("AUTH " + token("x")); got != fault("WRONGPASS The server does not know this token; use one from its token file.") {
			t.Fatalf("AUTH: %v", got)
		}
	}
	const often = fault("TOO_MANY_CALLS too many calls with invalid tokens from this address; wait, then send a valid token.")
	for _, letter := range []string{"x", "a"} {
		if got := s.dial(t).do("AUTH " + token(letter)); got != often {
			t.Errorf("too often: %v", got)
		}
	}
	s.move(time.Minute)
	if got := c.do("AUTH " + token("a")); got != "OK" {
		t.Errorf("a minute later: %v", got)
	}
}

// A token that is removed from the file is of no use any more, also on a connection that is
// open.
func TestRemovedToken(t *testing.T) {
	all := tokens(t)()
	var list atomic.Pointer[bearer.List]
	list.Store(all)
	o := Options{}
	o.Tokens = list.Load
	s := newStand(t, o)
	c := s.dial(t)
	c.do("AUTH " + token("a"))
	if got := fmt.Sprint(c.do("CL.THROTTLE k 1 2 3")); got != "[0 2 1 -1 2]" {
		t.Fatal(got)
	}
	rest, err := bearer.Parse([]byte("other admin " + token("o")))
	if err != nil {
		t.Fatal(err)
	}
	list.Store(rest)
	for _, command := range []string{"CL.THROTTLE k 1 2 3", "WEIR.RESET key user:a"} {
		if got := c.do(command); !strings.HasPrefix(fmt.Sprint(got), "WRONGPASS ") {
			t.Errorf("%s: %v", command, got)
		}
	}
}
