package manage

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/bearer"
)

// Credentials are by what a call says who makes it. What a browser sends by itself is here
// only if the server's own page has made the call.
type Credentials struct {
	Authorization []string // the header of this name
	Session       string   // see bearer.List.Session; "" if there is none

	// Proxy is whom a trusted proxy has authenticated; nil if it has not.
	Proxy *bearer.Holder
}

// Via is by what it is known who calls.
type Via uint8

const (
	ByNothing Via = iota // nobody is asked
	ByToken
	BySession
	ByProxy
)

func (v Via) String() string { return [...]string{"none", "token", "session", "proxy"}[v] }

// Caller is who calls.
type Caller struct {
	bearer.Holder
	Via Via
}

// Identify returns who calls. If the list is nil, that is somebody without a name who may do
// everything. A token goes before a session, and that before a proxy. The error is ErrNoToken, ErrWrongToken,
// ErrWrongSession or ErrSessionOver; Via is then by what it was tried. It counts nothing, so
// it is for calls that were allowed already.
func Identify(tokens *bearer.List, c Credentials, now time.Time) (Caller, error) {
	if tokens == nil {
		return Caller{Holder: bearer.Holder{Scope: bearer.Admin}}, nil
	}
	if given, ok := bearerOf(c.Authorization); ok {
		holder, known := tokens.Find(given)
		if !known {
			return Caller{Via: ByToken}, ErrWrongToken
		}
		return Caller{holder, ByToken}, nil
	}
	switch {
	case slices.ContainsFunc(c.Authorization, IsBearer):
		return Caller{}, ErrNoToken
	case c.Session == "" && c.Proxy != nil:
		return Caller{*c.Proxy, ByProxy}, nil
	case c.Session == "":
		return Caller{}, ErrNoToken
	}
	holder, err := tokens.FindSession(c.Session, now)
	switch {
	case errors.Is(err, bearer.ErrSessionOver):
		return Caller{Via: BySession}, ErrSessionOver
	case err != nil:
		return Caller{Via: BySession}, ErrWrongSession
	}
	return Caller{holder, BySession}, nil
}

// bearerOf is the token of a call, if it has just one.
func bearerOf(all []string) (string, bool) {
	if len(all) != 1 || !IsBearer(all[0]) {
		return "", false
	}
	_, bearer, _ := strings.Cut(all[0], " ")
	bearer = strings.Trim(bearer, " ")
	return bearer, bearer != ""
}

// IsBearer is whether an Authorization header is about a token. Others may be for a proxy in front.
func IsBearer(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer")
}
