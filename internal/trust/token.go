// Package trust has the certificates and tokens by which a server and its clients know each other,
// in files that are read again when they change.
package trust

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

// Rights are what a token is good for. Has tells whether some include others.
type Rights uint8

const (
	Peek    Rights = 32                         // to see how requests would be decided; no file names it
	Look    Rights = 128                        // to look at the directory of clients; no file names it
	Read    Rights = 1 | Peek | Look            // to look at everything
	Use     Rights = 2 | Read                   // and to count and queue, which is for applications
	Check   Rights = 8 | Peek                   // to let requests be decided, and charged if they fit
	Charge  Rights = 16 | Check                 // and charged although they do not fit
	Clients Rights = 64 | Look                  // to look at the directory of clients, and change it
	Admin   Rights = 4 | Use | Charge | Clients // to change everything
)

// words are the rights as a file names them; each comes before those that it includes.
var words = []word{{"admin", Admin}, {"use", Use}, {"read", Read}, {"clients", Clients}, {"charge", Charge}, {"check", Check}}

type word struct {
	name  string
	right Rights
}

// names are the words, in the order in which people are told of them.
var names = []string{"read", "use", "admin", "check", "charge", "clients"}

// Has reports whether all of some rights are among these.
func (r Rights) Has(needs Rights) bool { return r&needs == needs }

// String returns the words that stand for the rights in a file. Those that others include are
// left out. A right that no file names is told as the least that includes it.
func (r Rights) String() string {
	switch r {
	case Peek:
		r = Check
	case Look:
		r = Clients
	}
	var all []string
	told := Rights(0)
	for _, w := range words {
		if r.Has(w.right) && !told.Has(w.right) {
			all, told = append(all, w.name), told|w.right
		}
	}
	return strings.Join(all, ", ")
}

// Scope is the one of admin, use and read that includes the others; "" if there is none.
func (r Rights) Scope() string {
	for _, w := range words[:3] {
		if r.Has(w.right) {
			return w.name
		}
	}
	return ""
}

// Holder is whom a token was given to. It has patterns if some of its rights are bounded.
type Holder struct {
	Name   string
	Rights Rights

	patterns *patterns
}

// Permit returns whether a right of the holder is good for a rule, under the key of a client;
// nil if it is good for all of them.
func (h *Holder) Permit(right Rights) func(rule, key string) bool {
	switch p := h.patterns; {
	case p == nil || p.free.Has(right):
		return nil
	case right == Charge:
		return p.charge
	default:
		return p.check
	}
}

// List is an immutable list of tokens. A nil list contains no token.
type List struct {
	entries []entry
	bySum   map[[sha256.Size]byte]int
}

type entry struct {
	holder Holder
	sum    [sha256.Size]byte
}

// Find returns the holder of a token. It looks for the token's hash. How long that takes
// tells nothing of a token: a client cannot choose the beginning of a hash, and where a map
// looks for it is random.
func (l *List) Find(bearer string) (Holder, bool) {
	if i, ok := l.findEntry(bearer); ok {
		return l.entries[i].holder, true
	}
	return Holder{}, false
}

func (l *List) findEntry(bearer string) (int, bool) {
	if l == nil || len(bearer) < minToken || len(bearer) > maxToken {
		return 0, false
	}
	sum := sha256.Sum256([]byte(bearer))
	i, found := l.bySum[sum]
	return i, found
}

// Grants reports whether a token of the list has all of some rights.
func (l *List) Grants(needs Rights) bool {
	return l != nil && slices.ContainsFunc(l.entries, func(e entry) bool { return e.holder.Rights.Has(needs) })
}

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
	i, ok := l.findEntry(token)
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
