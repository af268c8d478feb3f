package rule

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/notation"
)

// vocabulary is the words for the values of a type, in their order, and what the same things
// are called elsewhere.
type vocabulary[W ~uint8] struct {
	kind      string
	names     []string
	elsewhere map[string]string
}

func (v *vocabulary[W]) parse(name string) (W, error) {
	i, err := parseWord(v.names, v.elsewhere, name)
	return W(i), err
}

func (v *vocabulary[W]) unmarshal(to *W, text []byte) (err error) {
	*to, err = v.parse(string(text))
	return err
}

func (v *vocabulary[W]) name(w W) string {
	if int(w) < len(v.names) {
		return v.names[w]
	}
	return fmt.Sprintf("%s(%d)", v.kind, w)
}

var (
	modes = vocabulary[Mode]{"Mode", []string{Enforce: "enforce", Shadow: "shadow", Soft: "soft", Off: "off"}, map[string]string{
		"dry_run": "shadow", "dryrun": "shadow", "shadow_mode": "shadow", "log_only": "shadow", "report_only": "shadow", "monitor": "shadow",
		"warn": "soft", "warn_only": "soft", "advisory": "soft",
		"on": "enforce", "enabled": "enforce", "active": "enforce", "disabled": "off",
	}}
	failures = vocabulary[Failure]{"Failure", []string{Open: "open", Closed: "closed", Local: "local"}, map[string]string{
		"fail_open": "open", "allow": "open", "fail_closed": "closed", "fail_close": "closed", "deny": "closed",
		"fallback": "local", "local_fallback": "local", "memory": "local",
	}}
	expiries = vocabulary[Expiry]{"Expiry", []string{Keep: "keep", Release: "release"}, map[string]string{
		"charge": "keep", "commit": "keep", "settle": "keep", "refund": "release", "cancel": "release", "rollback": "release",
	}}
	sources = vocabulary[SourceKind]{"SourceKind", []string{
		IP: "ip", User: "user", APIKey: "api_key", Global: "global",
		Tier: "tier", Host: "host", Method: "method", Route: "route",
		Header: "header", Cookie: "cookie", Query: "query", Attribute: "attr", Level: "level", Levels: "levels",
	}, map[string]string{
		"address": "ip", "ip_address": "ip", "client_ip": "ip", "source_ip": "ip", "remote_addr": "ip", "remote_address": "ip", "remote_ip": "ip",
		"user_id": "user", "userid": "user", "username": "user",
		"all": "global", "everyone": "global", "everybody": "global", "*": "global",
		"attribute": "attr",
		"plan":      "tier", "domain": "host", "hostname": "host", "verb": "method", "http_method": "method", "path": "route", "endpoint": "route", "url": "route", "uri": "route",
	}}
)

// ParseMode parses "enforce", "shadow", "soft" or "off".
func ParseMode(name string) (Mode, error) { return modes.parse(name) }

// String returns the name of the mode, which ParseMode accepts.
func (m Mode) String() string { return modes.name(m) }

// Denies reports whether rules in this mode deny requests.
func (m Mode) Denies() bool { return m == Enforce }

// MarshalText returns the name, so that JSON contains the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText parses a name as ParseMode does.
func (m *Mode) UnmarshalText(text []byte) error { return modes.unmarshal(m, text) }

// ParseFailure parses "open", "closed" or "local".
func ParseFailure(name string) (Failure, error) { return failures.parse(name) }

// String returns the name, which ParseFailure accepts.
func (f Failure) String() string { return failures.name(f) }

// MarshalText returns the name, so that JSON contains the name.
func (f Failure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText parses a name as ParseFailure does.
func (f *Failure) UnmarshalText(text []byte) error { return failures.unmarshal(f, text) }

// ParseExpiry parses "keep" or "release".
func ParseExpiry(name string) (Expiry, error) { return expiries.parse(name) }

// String returns the name, which ParseExpiry accepts.
func (e Expiry) String() string { return expiries.name(e) }

// MarshalText returns the name, so that JSON contains the name.
func (e Expiry) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText parses a name as ParseExpiry does.
func (e *Expiry) UnmarshalText(text []byte) error { return expiries.unmarshal(e, text) }

// ParseSource parses a part of a key: "ip", "user", "api_key", "global", "tier", "host",
// "method", "route", an address with prefixes as in "ip/24", "ip6/48" or "ip/24/48", or a
// kind and a name as in "header:X-Tenant". It canonicalizes the names of headers.
func ParseSource(text string) (Source, error) {
	if strings.HasPrefix(text, "ip/") || strings.HasPrefix(text, "ip6") {
		return parsePrefixes(text)
	}
	kind, name, named := strings.Cut(text, ":")
	i := slices.Index(sources.names, kind)
	switch {
	case i < 0 || SourceKind(i) == Level:
		return Source{}, unknownSource(kind, name, named)
	case (SourceKind(i) < Header || SourceKind(i) == Levels) && named:
		return Source{}, fmt.Errorf("%s has no name; write %q alone", kind, kind)
	case SourceKind(i) >= Header && SourceKind(i) != Levels && name == "":
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
	if hint := sourceHint(kind, name, named); hint != "" {
		return errors.New(hint)
	}
	return fmt.Errorf("%q is unknown; use ip, user, api_key, global, tier, host, method, route, header:X, cookie:X, query:X, attr:X or a name in the levels of the document", kind)
}

// sourceHint says what was probably meant by the name of a kind that does not exist; "" if that is not known.
func sourceHint(kind, name string, named bool) string {
	if here := notation.NameHere(kind, sources.elsewhere); here != "" {
		return fmt.Sprintf("%q is called %q here", kind, exampleSource(here, name, named))
	}
	if near := notation.Nearest(kind, sources.names); near != "" {
		return fmt.Sprintf("%q is unknown; did you mean %q?", kind, exampleSource(near, name, named))
	}
	return ""
}

// exampleSource is a source of a kind that ParseSource accepts, with this name if it can have it.
func exampleSource(kind, name string, named bool) string {
	with := kind + ":" + name
	if _, err := ParseSource(with); err == nil && named {
		return with
	}
	if example := sourceExamples[SourceKind(slices.Index(sources.names, kind))]; example != "" {
		return kind + ":" + example
	}
	return kind
}

// String returns the notation that ParseSource accepts.
func (s Source) String() string {
	kind := sources.name(s.Kind)
	if s.Kind == IP {
		return s.prefixes()
	}
	switch {
	case s.Kind < Header || s.Kind == Levels:
		return kind
	case s.Kind == Level:
		return s.Name
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
	if here := notation.NameHere(word, elsewhere); here != "" {
		return 0, fmt.Errorf("%q is called %q here", word, here)
	}
	return 0, fmt.Errorf("%q is unknown; %s", word, notation.Hint(word, names, "choose one of "+strings.Join(names, ", ")))
}

// fewOf lists the first names, and counts the others.
func fewOf(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
