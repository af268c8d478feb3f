package manage

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/bearer"
)

// TokenHeader is a header with a token. It goes before Authorization, which may be that of a
// request that a proxy asks about. Metadata has it in lower case.
const TokenHeader = "Weir-Token"

// Credentials are the credentials of a call. They include a cookie only if the server's
// own page made the call.
type Credentials struct {
	Token         []string // the header Weir-Token, for which see [TokenHeader]
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

// anybody is the caller where no token is required.
var anybody = Caller{Holder: bearer.Holder{Rights: bearer.Admin}}

// need is a *RightError unless the caller has a right.
func (c *Caller) need(right bearer.Rights) error {
	if c.Rights.Has(right) {
		return nil
	}
	return &RightError{Holder: c.Name, Has: c.Rights, Needs: right}
}

// Identify returns the caller. If the list is nil, the caller has no name and may do
// everything. Precedence: token, session, proxy. The error is ErrNoToken, ErrWrongToken,
// ErrWrongSession or ErrSessionOver; Via then tells what was tried. Identify does not
// count attempts, so use it for calls that were already allowed.
func Identify(tokens *bearer.List, c Credentials, now time.Time) (Caller, error) {
	if tokens == nil {
		return anybody, nil
	}
	if given, ok := c.token(); ok {
		holder, known := tokens.Find(given)
		if !known {
			return Caller{Via: ByToken}, ErrWrongToken
		}
		return Caller{holder, ByToken}, nil
	}
	switch {
	case c.HasToken():
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

// token returns the token of a call, if it has exactly one.
func (c *Credentials) token() (string, bool) {
	if len(c.Token) > 0 {
		return c.Token[0], len(c.Token) == 1 && c.Token[0] != ""
	}
	if len(c.Authorization) != 1 || !isBearer(c.Authorization[0]) {
		return "", false
	}
	_, bearer, _ := strings.Cut(c.Authorization[0], " ")
	bearer = strings.Trim(bearer, " ")
	return bearer, bearer != ""
}

// HasToken reports whether a call has a token, or several. Other Authorization headers may be
// for a proxy in front.
func (c *Credentials) HasToken() bool {
	return len(c.Token) > 0 || slices.ContainsFunc(c.Authorization, isBearer)
}

func isBearer(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer")
}
