package trust

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var monday = time.Unix(1_800_000_000, 0)

func list(t testing.TB, source string) *List {
	t.Helper()
	l, err := ParseTokens([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSession(t *testing.T) {
	l := list(t, "alice admin "+alice+"\nbob read "+bob)
	session, ok := l.Session(alice, monday.Add(time.Hour))
	if !ok || strings.Contains(session, alice) || len(session) > maxSession || strings.ContainsAny(session, "\";, \\") {
		t.Fatalf("%q, %v", session, ok)
	}
	if _, ok := l.Session("nobody-knows-this-token", monday); ok {
		t.Error("a token that is not on the list has a session")
	}
	for _, c := range []struct {
		name    string
		list    *List
		session string
		after   time.Duration
		want    Holder
		err     error
	}{
		{"now", l, session, 0, Holder{Name: "alice", Rights: Admin}, nil},
		{"at its end", l, session, time.Hour - time.Second, Holder{Name: "alice", Rights: Admin}, nil},
		{"over", l, session, time.Hour, Holder{}, ErrSessionOver},
		{"on another instance", list(t, "bob use "+bob+"\nalice admin "+alice), session, 0, Holder{Name: "alice", Rights: Admin}, nil},
		{"with less than before", list(t, "alice read "+alice), session, 0, Holder{Name: "alice", Rights: Read}, nil},
		{"the token is gone", list(t, "bob read "+bob), session, 0, Holder{}, ErrNoSession},
		{"the token is another", list(t, "alice admin "+bob), session, 0, Holder{}, ErrNoSession},
		{"the token has another name", list(t, "ann admin "+alice), session, 0, Holder{}, ErrNoSession},
		{"no list", nil, session, 0, Holder{}, ErrNoSession},
		{"as somebody else", l, strings.Replace(session, "alice|", "bob|", 1), 0, Holder{}, ErrNoSession},
		{"longer", l, strings.Replace(session, "|18", "|19", 1), 0, Holder{}, ErrNoSession},
		{"without a signature", l, session[:strings.LastIndexByte(session, '|')+1], 0, Holder{}, ErrNoSession},
		{"of the list's own hash", l, "alice|9999999999|" + (&entry{}).sign("alice|9999999999"), 0, Holder{}, ErrNoSession},
		{"nothing", l, "", 0, Holder{}, ErrNoSession},
		{"bars", l, "||", 0, Holder{}, ErrNoSession},
		{"the token itself", l, alice, 0, Holder{}, ErrNoSession},
		{"long", l, session + strings.Repeat("x", maxSession), 0, Holder{}, ErrNoSession},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := c.list.FindSession(c.session, monday.Add(c.after)); got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// No other text than the session is one.
func TestSessionsCannotBeChanged(t *testing.T) {
	l := list(t, "alice admin "+alice)
	session, _ := l.Session(alice, monday.Add(time.Hour))
	rapid.Check(t, func(t *rapid.T) {
		changed := []byte(session)
		at := rapid.IntRange(0, len(changed)-1).Draw(t, "at")
		changed[at] = rapid.Byte().Draw(t, "byte")
		if _, err := l.FindSession(string(changed), monday); err == nil && string(changed) != session {
			t.Fatalf("%q is a session", changed)
		}
	})
}
