package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/manage"
)

// SignIn configures the header in which a proxy sends the name of a person whom it has
// authenticated. Only the trusted proxies of Options.Authz can use it.
type SignIn struct {
	Header string        // header with the name; "" disables sign-in by a proxy
	Scope  bearer.Rights // of everyone who signs in this way; default bearer.Read
}

// maxUser is the maximum length of a name in bytes.
const maxUser = 128

// check returns why the options cannot be used.
func (s *SignIn) check(o *Options) error {
	s.Header, s.Scope = http.CanonicalHeaderKey(s.Header), cmp.Or(s.Scope, bearer.Read)
	switch {
	case s.Header == "":
		return nil
	case len(o.Authz.TrustedProxies) == 0:
		return errors.New("httpapi: SignIn requires TrustedProxies; weir trusts its header only from those proxies")
	case strings.Trim(s.Header, headerLetters) != "" || slices.Contains(otherMeaning, s.Header):
		return fmt.Errorf("httpapi: SignIn.Header: the header %q has another meaning, or is invalid; use another one, such as X-Forwarded-User", s.Header)
	}
	return nil
}

const headerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// otherMeaning are headers that clients or proxies send for other purposes.
var otherMeaning = []string{
	"Authorization", "Cookie", "Forwarded", "Host", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id", ownPage, manage.TokenHeader,
}

// signedIn returns the person whom a proxy has authenticated. It returns nil if there is
// none, or if the caller is not a trusted proxy.
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
		return nil, fault.BadField.Of("%s: must appear once, and have a name of at most %d bytes without control characters; make the proxy replace the header that clients send.", in.Header, maxUser).In(in.Header)
	}
	return &bearer.Holder{Name: names[0], Rights: in.Scope}, nil
}

// isUser reports whether a name is safe to write to logs and to the history.
func isUser(name string) bool {
	if len(name) > maxUser || !utf8.ValidString(name) {
		return false
	}
	return !slices.ContainsFunc([]rune(name), func(c rune) bool { return !unicode.IsPrint(c) })
}
