package respapi

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
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
		{"r", "CL.THROTTLE k 1 2 3", "NOPERM The token of reader has the rights read; use one with the right use."},
		{"r", "WEIR.RESET key user:a", "NOPERM The token of reader has the rights read; use one with the right admin."},
		{"u", "CL.THROTTLE k 1 2 3", "[0 2 1 -1 2]"},
		{"u", "WEIR.RESET key user:a", "NOPERM The token of app has the rights use; use one with the right admin."},
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
			if got := c.do("CL.THROTTLE k 1 2 3"); got != failure("NOAUTH Authentication required.") {
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
	if got := c.do("HELLO 3 AUTH default wrong-wrong-wrong-wrong-wrong-wrong"); got != failure("WRONGPASS The server does not know this token; use one from its token file.") {
		t.Fatalf("HELLO: %v", got)
	}
	for range 9 {
		if got := c.do("AUTH " + token("x")); got != failure("WRONGPASS The server does not know this token; use one from its token file.") {
			t.Fatalf("AUTH: %v", got)
		}
	}
	const often = failure("TOO_MANY_CALLS too many calls with invalid tokens from this address; wait, then send a valid token.")
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
	var list atomic.Pointer[trust.List]
	list.Store(all)
	o := Options{}
	o.Tokens = list.Load
	s := newStand(t, o)
	c := s.dial(t)
	c.do("AUTH " + token("a"))
	if got := fmt.Sprint(c.do("CL.THROTTLE k 1 2 3")); got != "[0 2 1 -1 2]" {
		t.Fatal(got)
	}
	rest, err := trust.ParseTokens([]byte("other admin " + token("o")))
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

// Where checks take a token, nobody charges anybody without one that is good for it.
func TestWhoMayCharge(t *testing.T) {
	list, err := trust.ParseTokens([]byte("reader read " + token("r") + "\nboss admin " + token("a") + "\nedge check " + token("e") +
		"\nbilling charge " + token("b") + "\neu check clients=user:eu-* " + token("u")))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := manage.NewGuard(manage.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, log := func() *trust.List { return list }, new(strings.Builder)
	checks := manage.NewChecks(tokens, guard, slog.New(slog.NewTextHandler(log, nil)))
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens, Guard: guard, Checks: checks}})
	hold := "hold " + strings.Repeat("0", 32)
	const none = "NOAUTH Authentication required."
	for _, step := range []struct{ as, command, want string }{
		{"", "WEIR.CHECK user victim path /api/x cost 100000 charge always", none},
		{"", "WEIR.CHECK user victim path /api/x", none},
		{"", "WEIR.PEEK user victim path /api/x", none},
		{"", "WEIR.RESERVE user victim path /api/x", none},
		{"", "WEIR.SETTLE used 1 " + hold, none},
		{"", "WEIR.CANCEL " + hold, none},
		{"", "WEIR.EXTEND " + hold, none},
		{"", "PING", "PONG"},
		{"r", "WEIR.CHECK user victim path /api/x", "NOPERM The token of reader has the rights read; use one with the right check."},
		{"r", "WEIR.PEEK user victim path /api/x", "[allowed"},
		{"r", "WEIR.SETTLE used 1 " + hold, "NOPERM "},
		{"e", "WEIR.CHECK user alice path /api/x", "[allowed"},
		{"e", "WEIR.CHECK user victim path /api/x cost 100000 charge always", "NOPERM The token of edge has the rights check; use one with the right charge."},
		{"e", "WEIR.SETTLE used 1 " + hold, "HOLD_UNKNOWN "},
		{"u", "WEIR.CHECK user victim path /api/x", "NOPERM The token of eu has the right check, but not for the rule "},
		{"u", "WEIR.CHECK user eu-1 path /api/x", "[allowed"},
		{"b", "WEIR.CHECK user alice path /api/x cost 100000 charge always", "[allowed"},
		{"a", "WEIR.CHECK user alice path /api/x charge always", "[allowed"},
	} {
		c := s.dial(t)
		if step.as != "" {
			if got := c.do("AUTH " + token(step.as)); got != "OK" {
				t.Fatalf("AUTH %s: %v", step.as, got)
			}
		}
		if got := fmt.Sprint(c.do(step.command)); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s as %q: got %v, want %s", step.command, step.as, got, step.want)
		}
		c.do("RESET")
		if got := c.do("WEIR.CHECK user alice path /api/x"); got != failure(none) {
			t.Errorf("after RESET: %v", got)
		}
	}
	if got := s.dial(t).do("AUTH " + token("x")); !strings.HasPrefix(fmt.Sprint(got), "WRONGPASS ") {
		t.Errorf("a wrong token: %v", got)
	}
	if text := log.String(); !strings.Contains(text, `msg="charged always" `) || !strings.Contains(text, "cost=100000 fitted=false holder=billing client=127.0.0.1") || strings.Contains(text, token("b")) {
		t.Error(text)
	}
}
