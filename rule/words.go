package rule

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/spelling"
)

var (
	modeNames    = []string{Enforce: "enforce", Shadow: "shadow", Soft: "soft", Off: "off"}
	failureNames = []string{Open: "open", Closed: "closed", Local: "local"}
	expiryNames  = []string{Keep: "keep", Release: "release"}
	sourceNames  = []string{
		IP: "ip", User: "user", APIKey: "api_key", Global: "global",
		Tier: "tier", Host: "host", Method: "method", Route: "route",
		Header: "header", Cookie: "cookie", Query: "query", Attribute: "attr",
	}
)

// What the same things are called elsewhere.
var (
	modesElsewhere = map[string]string{
		"dry_run": "shadow", "dryrun": "shadow", "shadow_mode": "shadow", "log_only": "shadow", "report_only": "shadow", "monitor": "shadow",
		"warn": "soft", "warn_only": "soft", "advisory": "soft",
		"on": "enforce", "enabled": "enforce", "active": "enforce", "disabled": "off",
	}
	failuresElsewhere = map[string]string{
		"fail_open": "open", "allow": "open", "fail_closed": "closed", "fail_close": "closed", "deny": "closed",
		"fallback": "local", "local_fallback": "local", "memory": "local",
	}
	expiriesElsewhere = map[string]string{"charge": "keep", "commit": "keep", "settle": "keep", "refund": "release", "cancel": "release", "rollback": "release"}
	sourcesElsewhere  = map[string]string{
		"address": "ip", "ip_address": "ip", "client_ip": "ip", "source_ip": "ip", "remote_addr": "ip", "remote_address": "ip", "remote_ip": "ip",
		"user_id": "user", "userid": "user", "username": "user",
		"all": "global", "everyone": "global", "everybody": "global", "*": "global",
		"attribute": "attr",
		"plan":      "tier", "domain": "host", "hostname": "host", "verb": "method", "http_method": "method", "path": "route", "endpoint": "route", "url": "route", "uri": "route",
	}
)

// ParseMode parses "enforce", "shadow", "soft" or "off".
func ParseMode(name string) (Mode, error) {
	i, err := parseWord(modeNames, modesElsewhere, name)
	return Mode(i), err
}

// String returns the name of the mode, which ParseMode accepts.
func (m Mode) String() string { return wordOf(modeNames, int(m), "Mode") }

// Denies reports whether rules in this mode deny requests.
func (m Mode) Denies() bool { return m == Enforce }

// MarshalText returns the name, so that JSON contains the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText parses a name as ParseMode does.
func (m *Mode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMode(string(text))
	return err
}

// ParseFailure parses "open", "closed" or "local".
func ParseFailure(name string) (Failure, error) {
	i, err := parseWord(failureNames, failuresElsewhere, name)
	return Failure(i), err
}

// String returns the name, which ParseFailure accepts.
func (f Failure) String() string { return wordOf(failureNames, int(f), "Failure") }

// MarshalText returns the name, so that JSON contains the name.
func (f Failure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText parses a name as ParseFailure does.
func (f *Failure) UnmarshalText(text []byte) (err error) {
	*f, err = ParseFailure(string(text))
	return err
}

// ParseExpiry parses "keep" or "release".
func ParseExpiry(name string) (Expiry, error) {
	i, err := parseWord(expiryNames, expiriesElsewhere, name)
	return Expiry(i), err
}

// String returns the name, which ParseExpiry accepts.
func (e Expiry) String() string { return wordOf(expiryNames, int(e), "Expiry") }

// MarshalText returns the name, so that JSON contains the name.
func (e Expiry) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText parses a name as ParseExpiry does.
func (e *Expiry) UnmarshalText(text []byte) (err error) {
	*e, err = ParseExpiry(string(text))
	return err
}

// ParseSource parses a part of a key: "ip", "user", "api_key", "global", "tier", "host",
// "method", "route", an address with prefixes as in "ip/24", "ip6/48" or "ip/24/48", or a
// kind and a name as in "header:X-Tenant". It canonicalizes the names of headers.
func ParseSource(text string) (Source, error) {
	if strings.HasPrefix(text, "ip/") || strings.HasPrefix(text, "ip6") {
		return parsePrefixes(text)
	}
	kind, name, named := strings.Cut(text, ":")
	i := slices.Index(sourceNames, kind)
	switch {
	case i < 0:
		return Source{}, unknownSource(kind, name, named)
	case SourceKind(i) < Header && named:
		return Source{}, fmt.Errorf("%s has no name; write %q alone", kind, kind)
	case SourceKind(i) >= Header && name == "":
		return Source{}, fmt.Errorf("%s needs a name; write for example %q", kind, kind+":"+sourceExamples[SourceKind(i)])
	case len(name) > maxName:
		return Source{}, fmt.Errorf("the name has %d bytes; the maximum is %d", len(name), maxName)
	case (SourceKind(i) == Header || SourceKind(i) == Cookie) && !isToken(name):
		return Source{}, fmt.Errorf("%q is not a valid name for a %s; use letters, digits and dashes", name, kind)
	case SourceKind(i) == Header:
		name = textproto.CanonicalMIMEHeaderKey(name)
	}
	return Source{Kind: SourceKind(i), Name: name}, nil
}

var sourceExamples = map[SourceKind]string{Header: "X-Tenant", Cookie: "session", Query: "account", Attribute: "action"}

func unknownSource(kind, name string, named bool) error {
	if here := spelling.Called(kind, sourcesElsewhere); here != "" {
		if named && here == sourceNames[Attribute] {
			here += ":" + name
		}
		return fmt.Errorf("%q is called %q here", kind, here)
	}
	if near := spelling.Nearest(kind, sourceNames); near != "" {
		if named {
			near += ":" + name
		}
		return fmt.Errorf("%q is unknown; did you mean %q?", kind, near)
	}
	return fmt.Errorf("%q is unknown; use ip, user, api_key, global, tier, host, method, route, header:X, cookie:X, query:X or attr:X", kind)
}

// String returns the notation that ParseSource accepts.
func (s Source) String() string {
	kind := wordOf(sourceNames, int(s.Kind), "SourceKind")
	if s.Kind == IP {
		return s.prefixes()
	}
	if s.Kind < Header {
		return kind
	}
	return kind + ":" + s.Name
}

// MarshalText returns the notation, so that JSON contains it.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the notation as ParseSource does.
func (s *Source) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSource(string(text))
	return err
}

// isToken is whether a name is one in the sense of HTTP.
func isToken(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

func parseWord(names []string, elsewhere map[string]string, word string) (int, error) {
	if i := slices.Index(names, word); i >= 0 {
		return i, nil
	}
	if here := spelling.Called(word, elsewhere); here != "" {
		return 0, fmt.Errorf("%q is called %q here", word, here)
	}
	return 0, fmt.Errorf("%q is unknown; %s", word, spelling.Hint(word, names, "choose one of "+strings.Join(names, ", ")))
}

func wordOf(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}
