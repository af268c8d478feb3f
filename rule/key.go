package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/match"
)

const prefixAPIKey = "api_key:"

// newKey makes ready what a rule counts by, of which some are as its conditions name them.
func newKey(r *Rule, conditions *match.Rule, bits int, levels []string) ([]part, error) {
	if len(r.Key) == 0 {
		return nil, errors.New("key: required; write what identifies a client, or global to count all clients together")
	}
	parts := make([]part, len(r.Key))
	for i, s := range r.Key {
		p, err := newPart(s, bits)
		if err == nil && s.Kind == Tier {
			err = checkTierNames(r.Tiers)
		}
		if err == nil && s.Kind == Levels {
			p.levels, err = newLevelParts(r, bits, levels)
		}
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		if p.lead = p.prefix; i > 0 {
			p.lead = "|" + p.prefix
		}
		p.match, p.tiers = conditions, placesOf(r.Tiers)
		if values := r.Match.Attributes[p.source.Name]; s.Kind == Attribute && match.NamesAny(values) {
			p.listed = values
		}
		p.write()
		parts[i] = p
	}
	return parts, nil
}

func newPart(s Source, bits int) (part, error) {
	if int(s.Kind) >= len(sources.names) {
		return part{}, fmt.Errorf("source %d is unknown; use one of the constants of package rule", s.Kind)
	}
	kind := sources.names[s.Kind]
	p := part{source: s, secret: s.secret(), bits4: cmp.Or(s.IPv4Bits, 32), bits6: cmp.Or(s.IPv6Bits, bits), prefix: kind + ":"}
	switch {
	case s.Kind != IP && s.IPv4Bits|s.IPv6Bits != 0:
		return part{}, fmt.Errorf("%s has no prefix; remove IPv4Bits and IPv6Bits", kind)
	case p.bits4 < 1 || p.bits4 > 32 || p.bits6 < 1 || p.bits6 > 128:
		return part{}, errPrefix
	case s.Kind == Global:
		p.prefix = kind
		return p, nil
	case s.Kind < Header || s.Kind == Levels:
		return p, nil
	case s.Kind == Level && !isLevelName(s.Name):
		return part{}, fmt.Errorf("%q cannot be the name of a level; %s", s.Name, levelNames)
	case s.Kind == Level:
		p.prefix = s.Name + ":"
		return p, nil
	case s.Name == "":
		return part{}, fmt.Errorf("%s has no name; write for example %s:X", kind, kind)
	case len(s.Name) > maxValue:
		return part{}, fmt.Errorf("the name of %s has %d bytes; the maximum is %d", kind, len(s.Name), maxValue)
	case s.Kind == Header:
		// The case of a header's name must not decide who somebody is.
		p.source.Name = textproto.CanonicalMIMEHeaderKey(s.Name)
		p.host = p.source.Name == "Host"
	}
	p.prefix += string(appendEscaped(nil, p.source.Name)) + ":"
	return p, nil
}

// ParseIdentity converts a client as people write it, such as "user:alice" or
// "ip:2001:db8::1", into the form that [Entry.Identity] returns.
func (c *Entry) ParseIdentity(text string) (string, error) {
	return canonicalIdentity(c.key, text)
}

// canonicalIdentity turns what a person wrote for a client into what Identity
// writes for it: addresses masked, API keys and secrets hashed unless they are.
func canonicalIdentity(key []part, text string) (string, error) {
	if whole, found := strings.CutPrefix(text, `\`); found && isHash(whole) {
		return text, nil
	}
	pieces := splitIdentity(text)
	if len(pieces) != len(key) {
		return "", fmt.Errorf(`it has %d parts and the key has %d; write it as %s (and "\|" for a "|" in a value)`, len(pieces), len(key), example(key))
	}
	var dst []byte
	for i, piece := range pieces {
		if i > 0 {
			dst = append(dst, '|')
		}
		var err error
		if dst, err = key[i].appendText(dst, piece); err != nil {
			return "", fmt.Errorf("%w; write it as %s", err, example(key))
		}
	}
	return string(bound(dst, 0)), nil
}

// splitIdentity splits at every "|" that has no "\" before it.
func splitIdentity(text string) (pieces []string) {
	begin := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '|':
			pieces = append(pieces, text[begin:i])
			begin = i + 1
		}
	}
	return append(pieces, text[begin:])
}

// appendText appends a part that a person wrote.
func (p *part) appendText(dst []byte, text string) ([]byte, error) {
	for i := range p.levels {
		if level := &p.levels[i]; strings.HasPrefix(text, level.prefix) {
			return level.appendText(dst, text)
		}
	}
	if p.source.Kind == Global && text == p.prefix {
		return append(dst, text...), nil
	}
	if len(text) <= len(p.prefix) || !p.begins(text) || p.source.Kind == Global {
		return nil, errors.New("this is not part of the rule's key")
	}
	text = text[len(p.prefix):]
	if p.source.Kind == IP {
		return p.appendIPText(dst, text)
	}
	if p.source.Kind.isNamed() {
		return p.appendNamedText(dst, text)
	}
	if hashed, found := strings.CutPrefix(text, `\`); p.secret && isHash(text) || !p.secret && found && isHash(hashed) {
		return append(append(dst, p.prefix...), text...), nil
	}
	value, err := unescapeValue(text)
	if err != nil {
		return nil, err
	}
	if p.listedValue(value) != value {
		return nil, fmt.Errorf("the rule counts by no %s %q, but by %s", p.describe(), value, fewOf(p.listed, 5))
	}
	return p.appendValue(dst, value), nil
}

// begins is whether a text has the part's prefix; the name of a header in any case.
func (p *part) begins(text string) bool {
	head := text[:len(p.prefix)]
	return head == p.prefix || p.source.Kind == Header && strings.EqualFold(head, p.prefix)
}

func unescapeValue(text string) (string, error) {
	if strings.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	var value strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
			if i == len(text) || text[i] != '\\' && text[i] != '|' {
				return "", errors.New(`it has a "\" that escapes nothing; write "\\" for a backslash`)
			}
		}
		value.WriteByte(text[i])
	}
	return value.String(), nil
}

// appendIPText takes an address, or a network as large as what tells clients apart.
func (p *part) appendIPText(dst []byte, text string) ([]byte, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		network = netip.PrefixFrom(ip.WithZone(""), ip.BitLen())
	}
	network = canonicalNetwork(network)
	client := p.bitsOf(network.Addr())
	if network.Bits() < client {
		return nil, fmt.Errorf("%q contains many clients, because each /%d is one client; name one of them", text, client)
	}
	dst, _ = p.appendAddress(append(dst, p.prefix...), network.Addr())
	return dst, nil
}

// example shows how an identity of the key is written.
func example(key []part) string {
	parts := make([]string, len(key))
	for i, p := range key {
		switch {
		case p.source.Kind == Global:
			parts[i] = p.prefix
		case len(p.levels) > 0:
			parts[i] = p.levels[0].prefix + "…"
		case p.source.Kind == IP:
			parts[i] = p.prefix + "203.0.113.7"
		case p.source.Kind.isNamed():
			parts[i] = string(p.appendValue(nil, p.names()[0]))
		default:
			parts[i] = p.prefix + "…"
		}
	}
	return `"` + strings.Join(parts, "|") + `"`
}

// discreet quotes what a person wrote for a client, but for what may be a secret.
func discreet(key []part, text string) string {
	hide := soundsSecret(text)
	for _, p := range key {
		hide = hide || p.secret
	}
	kind, _, found := strings.Cut(text, ":")
	switch {
	case !hide:
		return strconv.Quote(text)
	case found:
		return strconv.Quote(kind + ":…")
	}
	return `"…"`
}

var errPrefix = errors.New("a prefix has 1 to 32 bits of an IPv4 address and 1 to 128 of an IPv6 address; write for example ip/24, ip6/48, or ip/24/48 for both")

// parsePrefixes parses an address of which only the beginning tells clients apart.
func parsePrefixes(text string) (s Source, err error) {
	kind, bits, _ := strings.Cut(text, "/")
	switch kind {
	case "ip":
		first, second, both := strings.Cut(bits, "/")
		if s.IPv4Bits, err = parseBits(first, 32); err == nil && both {
			s.IPv6Bits, err = parseBits(second, 128)
		}
	case "ip6":
		s.IPv6Bits, err = parseBits(bits, 128)
	default:
		err = fmt.Errorf("%q is unknown; write for example ip, ip/24 or ip6/48", kind)
	}
	if err != nil {
		return Source{}, err
	}
	return s, nil
}

func parseBits(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || text != strconv.Itoa(n) {
		return 0, errPrefix
	}
	return n, nil
}

// prefixes writes what parsePrefixes accepts.
func (s Source) prefixes() string {
	switch {
	case s.IPv4Bits == 0 && s.IPv6Bits == 0:
		return sources.names[IP]
	case s.IPv4Bits == 0:
		return fmt.Sprintf("ip6/%d", s.IPv6Bits)
	case s.IPv6Bits == 0:
		return fmt.Sprintf("ip/%d", s.IPv4Bits)
	}
	return fmt.Sprintf("ip/%d/%d", s.IPv4Bits, s.IPv6Bits)
}

const (
	// marker begins a hash, so that it can be told from a value in clear.
	marker = "sha256:"

	// domain keeps these hashes apart from those of other programs.
	domain = "weir:"

	// hashBytes of a SHA-256 are enough: a value for a given hash cannot be found.
	hashBytes = 16
)

// HashAPIKey returns the hash that replaces an API key in identities, and so in stores,
// logs and statistics: "sha256:" and the first 32 hexadecimal digits of the SHA-256 of
// "weir:api_key:" plus the key. In a shell:
//
//	printf 'weir:api_key:%s' "$KEY" | sha256sum | cut -c1-32
//
// Rules can name a key by its hash, as in an override for "api_key:sha256:…". The hash
// protects only keys that cannot be guessed; short keys can be found by trying.
func HashAPIKey(key string) string {
	return string(appendHash(nil, hashOf(prefixAPIKey, key)))
}

// hashOf is of the identity that would be written in clear.
func hashOf(prefix, value string) (sum [sha256.Size]byte) {
	h := sha256.New()
	var chunk [sha256.BlockSize]byte
	for _, s := range [...]string{domain, prefix, value} {
		for s != "" {
			n := copy(chunk[:], s)
			h.Write(chunk[:n])
			s = s[n:]
		}
	}
	h.Sum(sum[:0])
	return sum
}

func appendHash(dst []byte, sum [sha256.Size]byte) []byte {
	return hex.AppendEncode(append(dst, marker...), sum[:hashBytes])
}

// isHash is whether a text is a hash as appendHash writes it.
func isHash(s string) bool {
	digits, found := strings.CutPrefix(s, marker)
	return found && len(digits) == 2*hashBytes && strings.Trim(digits, "0123456789abcdef") == ""
}

// secret reports whether the values of a source are secret, so that stores, logs,
// statistics and answers contain only their hashes. The name of a cookie or query
// parameter does not tell whether it is a credential, so all of them are secret.
// Headers and attributes are secret by their names.
func (s Source) secret() bool {
	switch s.Kind {
	case APIKey, Cookie, Query:
		return true
	case Header, Attribute:
		return soundsSecret(s.Name)
	}
	return false
}

// secretWords are in the names of things that must not be seen in a log.
var secretWords = []string{"auth", "bearer", "cookie", "credential", "csrf", "jwt", "key", "pass", "secret", "sess", "sign", "token"}

// soundsSecret errs on the side of hashing: an override works all the same.
func soundsSecret(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "sid") || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}
