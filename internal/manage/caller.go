package manage

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/bearer"
)

// Credentials are the credentials of a call. They include a cookie only if the server's
// own page made the call.
type Credentials struct {
	Authorization []string // the header of this name
	Session       string   // see bearer.List.Session; "" if there is none

	// Proxy is the user whom a trusted proxy has authenticated; nil if there is none.
	Proxy *bearer.Holder
}

// Via tells how the caller was identified.
type Via uint8

const (
	ByNothing Via = iota // no token is required
	ByToken
	BySession
	ByProxy
)

func (v Via) String() string { return [...]string{"none", "token", "session", "proxy"}[v] }

// Caller is the holder of the credentials of a call.
type Caller struct {
	bearer.Holder
	Via Via
}

// Identify returns the caller. If the list is nil, the caller has no name and may do
// everything. Precedence: token, session, proxy. The error is ErrNoToken, ErrWrongToken,
// ErrWrongSession or ErrSessionOver; Via then tells what was tried. Identify does not
// count attempts, so use it for calls that were already allowed.
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

// bearerOf returns the token of a call, if it has exactly one.
func bearerOf(all []string) (string, bool) {
	if len(all) != 1 || !IsBearer(all[0]) {
		return "", false
	}
	_, bearer, _ := strings.Cut(all[0], " ")
	bearer = strings.Trim(bearer, " ")
	return bearer, bearer != ""
}

// IsBearer reports whether an Authorization header has a token. Other headers may be for a
// proxy in front.
func IsBearer(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer")
}
