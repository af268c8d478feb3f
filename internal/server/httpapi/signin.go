package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/bearer"
)

// SignIn is how a proxy in front says whom it has authenticated. The proxies of
// Options.Authz are believed, and nobody else.
type SignIn struct {
	Header string       // that has the name; "" is no sign-in
	Scope  bearer.Scope // of everybody who comes that way
}

// maxUser is the longest name that a proxy may tell, in bytes.
const maxUser = 128

// check is why nobody can be signed in as the options say.
func (s *SignIn) check(o *Options) error {
	s.Header = http.CanonicalHeaderKey(s.Header)
	switch {
	case s.Header == "":
		return nil
	case len(o.Authz.TrustedProxies) == 0:
		return errors.New("httpapi: SignIn requires TrustedProxies; its header is believed only from them")
	case strings.Trim(s.Header, headerLetters) != "" || slices.Contains(otherMeaning, s.Header):
		return fmt.Errorf("httpapi: SignIn.Header: %q cannot have the name; use another header, such as X-Forwarded-User", s.Header)
	}
	return nil
}

const headerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// otherMeaning are headers that clients or proxies send for another reason.
var otherMeaning = []string{
	"Authorization", "Cookie", "Forwarded", "Host", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id", ownPage,
}

// signedIn is whom a proxy has authenticated; nil if nobody is, or the caller is no proxy
// that is believed.
func (h *Handler) signedIn(r *http.Request) (*bearer.Holder, error) {
	in := h.options.SignIn
	if in.Header == "" || !h.clients.Trusts(r.RemoteAddr) {
		return nil, nil
	}
	names := r.Header[in.Header]
	if len(names) == 0 || len(names) == 1 && names[0] == "" {
		return nil, nil
	}
	if len(names) > 1 || !isUser(names[0]) {
		return nil, badField.of("%s: not one name of 1 to %d bytes without control characters; let the proxy set it once, and remove what clients send.", in.Header, maxUser).in(in.Header)
	}
	return &bearer.Holder{Name: names[0], Scope: in.Scope}, nil
}

// isUser is whether a name can do no harm in a log or a history.
func isUser(name string) bool {
	if len(name) > maxUser || !utf8.ValidString(name) {
		return false
	}
	return !slices.ContainsFunc([]rune(name), func(c rune) bool { return !unicode.IsPrint(c) })
}
