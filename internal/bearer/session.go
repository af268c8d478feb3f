package bearer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Errors of a session.
var (
	// ErrNoSession is a session that nobody on the list has made, or whose token is no
	// longer there. The two cannot be told apart.
	ErrNoSession = errors.New("token: no token of the list has made this session")

	// ErrSessionOver is a session whose time is over.
	ErrSessionOver = errors.New("token: the session is over")
)

// maxSession is more than the longest session, in bytes.
const maxSession = 160

// Session returns a text that stands for a token until a time, for a browser to keep. It
// has the name of the holder and the time, signed with a key that is made from the token:
// whoever has the list can verify it, and nobody needs to remember it. It ends when the
// token is taken off the list. Its scope is what the list says by then.
func (l *List) Session(token string, until time.Time) (string, bool) {
	i, ok := l.find(token)
	if !ok {
		return "", false
	}
	e := &l.entries[i]
	said := e.holder.Name + "|" + strconv.FormatInt(until.Unix(), 10)
	return said + "|" + e.sign(said), true
}

// FindSession returns who has a session. The error is ErrNoSession or ErrSessionOver.
func (l *List) FindSession(session string, now time.Time) (Holder, error) {
	if l == nil || len(session) > maxSession {
		return Holder{}, ErrNoSession
	}
	end := strings.LastIndexByte(session, '|')
	if end < 0 {
		return Holder{}, ErrNoSession
	}
	said, signature := session[:end], session[end+1:]
	name, until, _ := strings.Cut(said, "|")
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.holder.Name == name })
	if i < 0 || !hmac.Equal([]byte(signature), []byte(l.entries[i].sign(said))) {
		return Holder{}, ErrNoSession
	}
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil {
		return Holder{}, ErrNoSession // which nobody has signed
	}
	if now.Unix() >= seconds {
		return Holder{}, ErrSessionOver
	}
	return l.entries[i].holder, nil
}

// sign signs with a key of its own, so that what is signed here can never be taken for
// something else that the hash of the token is good for.
func (e *entry) sign(said string) string {
	key := authenticate(e.sum[:], "weir session 1")
	return base64.RawURLEncoding.EncodeToString(authenticate(key, said))
}

func authenticate(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
