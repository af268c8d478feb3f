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
	// ErrNoSession is returned for a session that no token of the list has signed. The
	// token may have been removed from the list.
	ErrNoSession = errors.New("token: no token of the list has made this session")

	// ErrSessionOver is returned for a session that has expired.
	ErrSessionOver = errors.New("token: the session is over")
)

// Names of the cookie that holds a session. Over HTTPS it has the prefix with which
// browsers take it from no other host and no plain page, so that no other site can set
// it.
const (
	PlainCookie  = "weir_session"
	SecureCookie = "__Host-" + PlainCookie
)

// maxSession is more than the longest session, in bytes.
const maxSession = 160

// Session returns a text that a browser can use instead of a token until a given time.
// It contains the name of the holder and the time, signed with a key derived from the
// token. So every instance with the list can verify it, and no instance has to store
// it. It ends when the token is removed from the list. Its rights are the current ones
// in the list.
func (l *List) Session(token string, until time.Time) (string, bool) {
	i, ok := l.find(token)
	if !ok {
		return "", false
	}
	e := &l.entries[i]
	said := e.holder.Name + "|" + strconv.FormatInt(until.Unix(), 10)
	return said + "|" + e.sign(said), true
}

// FindSession returns the holder of a session. The error is ErrNoSession or
// ErrSessionOver.
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
		return Holder{}, ErrNoSession // not signed by weir
	}
	if now.Unix() >= seconds {
		return Holder{}, ErrSessionOver
	}
	return l.entries[i].holder, nil
}

// sign signs with a derived key, so that a signature cannot be used for anything else.
func (e *entry) sign(said string) string {
	key := authenticate(e.sum[:], "weir session 1")
	return base64.RawURLEncoding.EncodeToString(authenticate(key, said))
}

func authenticate(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
