package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/match"
)

// isNamed reports whether a part is written as the rule names it, never as the client does.
// What a rule does not name is match.Any, so a rule bounds how many of them there are.
func (k SourceKind) isNamed() bool { return k >= Tier && k <= Route }

// name is which of the part's names a request has at a place, and the place behind it. Only an
// odd path, whose route is not known, has more than one.
func (p *part) name(req *Request, route match.Route, from int) (name, next int) {
	switch p.source.Kind {
	case Route:
		if route == 0 {
			return p.match.Route(req.Path, from)
		}
		return int(route) - 1, match.Only
	case Host:
		return p.match.Host(req.Host), match.Only
	case Method:
		return p.match.Method(req.Method), match.Only
	}
	if i, known := p.tiers[req.tier()]; known {
		return i, match.Only
	}
	return len(p.tiers), match.Only
}

// write makes the texts of all names ready, so that composing a key copies them.
func (p *part) write() {
	if !p.source.Kind.isNamed() {
		return
	}
	names := p.names()
	if names[len(names)-1] != match.Any {
		names = append(slices.Clip(names), match.Any) // of a request that does not meet the conditions
	}
	for _, name := range names {
		p.texts = append(p.texts, string(p.appendBare([]byte(p.lead), name)))
	}
}

// names are all values that the part can have.
func (p *part) names() []string {
	switch p.source.Kind {
	case Host:
		return p.match.Hosts()
	case Method:
		return p.match.Methods()
	case Route:
		return p.match.Routes()
	}
	return append(slices.Sorted(maps.Keys(p.tiers)), match.Any)
}

// placesOf are the places of tiers among the names of a part.
func placesOf(tiers map[string]Quota) map[string]int {
	places := make(map[string]int, len(tiers))
	for i, name := range slices.Sorted(maps.Keys(tiers)) {
		places[name] = i
	}
	return places
}

// checkTierNames keeps tiers apart from what stands for those that the rule does not name.
func checkTierNames(tiers map[string]Quota) error {
	if _, found := tiers[match.Any]; found {
		return errors.New(`a tier is called "*", which stands for all tiers that the rule does not name; rename it`)
	}
	return nil
}

// appendNamedText appends a part that a person wrote.
func (p *part) appendNamedText(dst []byte, text string) ([]byte, error) {
	value, err := unescapeValue(text)
	if err != nil {
		return nil, err
	}
	names := p.names()
	if slices.Contains(names, value) {
		return p.appendValue(dst, value), nil
	}
	for _, name := range names { // a long one is written as its hash
		if hashed := p.appendValue(nil, name); string(hashed[len(p.prefix):]) == text {
			return append(dst, hashed...), nil
		}
	}
	return nil, fmt.Errorf("the rule counts by no %s %q, but by %s", p.describe(), value, fewOf(names, 5))
}

// MaxLookup is the maximum number of identities that ParseIdentities returns.
const MaxLookup = 1000

// ParseIdentities converts a client as people write it, as ParseIdentity does. A tier, host,
// method or route may be missing. Then it returns an identity for each that the rule names: all
// that a rule with the key [user, route] counts for "user:alice".
func (c *Entry) ParseIdentities(text string) ([]string, error) {
	pieces := splitIdentity(text)
	if len(pieces) == len(c.key) || strings.HasPrefix(text, `\\`) {
		identity, err := c.ParseIdentity(text)
		if err != nil {
			return nil, err
		}
		return []string{identity}, nil
	}
	all := []string{""}
	for i := range c.key {
		p, choices := &c.key[i], []string(nil)
		switch given := len(pieces) > 0 && len(pieces[0]) > len(p.prefix) && p.begins(pieces[0]); {
		case given:
			choices, pieces = pieces[:1], pieces[1:]
		case p.source.Kind.isNamed():
			for _, name := range p.names() {
				choices = append(choices, string(p.appendValue(nil, name)))
			}
		}
		if len(choices)*len(all) > MaxLookup {
			return nil, fmt.Errorf("it stands for more than %d clients; write more parts, as in %s", MaxLookup, example(c.key))
		}
		all = combine(all, choices)
	}
	if len(pieces) > 0 || len(all) == 0 {
		return nil, fmt.Errorf("it has not the parts of the key; write it as %s, with or without tier, host, method and route", example(c.key))
	}
	for i, text := range all {
		var err error
		if all[i], err = c.ParseIdentity(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// combine puts each choice behind each beginning.
func combine(beginnings, choices []string) (all []string) {
	for _, beginning := range beginnings {
		for _, choice := range choices {
			if beginning != "" {
				choice = beginning + "|" + choice
			}
			all = append(all, choice)
		}
	}
	return all
}

// TierOf returns the tier of a client whose identity under the rule contains it; "" if the
// rule does not name the tier. It returns false if the identity does not contain a tier.
func (c *Entry) TierOf(identity string) (tier string, ok bool) {
	i := slices.IndexFunc(c.key, func(p part) bool { return p.source.Kind == Tier })
	if i < 0 {
		return "", false
	}
	pieces := splitIdentity(identity)
	if len(pieces) != len(c.key) {
		return "", false // it is too long, and hashed
	}
	for name := range c.tiers {
		if string(c.key[i].appendValue(nil, name)) == pieces[i] {
			return name, true
		}
	}
	return "", true
}

// Pattern returns the most specific path pattern of the rule that a request matches, such as
// "/users/{id}". It is "" if the rule has no paths.
func (c *Entry) Pattern(req *Request) string {
	if len(c.Match.Paths) == 0 || c.match == nil {
		return ""
	}
	if route, _ := c.match.Route(req.Path, 0); route < len(c.Match.Paths) {
		return c.match.Pattern(route)
	}
	return ""
}

// clientParts are what identifies a client where no rule says by what.
type clientParts struct{ user, apiKey, ip part }

func newClientParts(ipv6Bits int) (c clientParts) {
	for kind, p := range map[SourceKind]*part{User: &c.user, APIKey: &c.apiKey, IP: &c.ip} {
		*p, _ = newPart(Source{Kind: kind}, ipv6Bits) // these have no name that could be wrong
		p.lead = p.prefix
	}
	return c
}

// AppendClient appends the client of a request as [Entry.Identity] would for a rule that
// counts by user, or else by API key, or else by address. It appends nothing if the request
// has none of them.
func (t *Table) AppendClient(dst []byte, req *Request) []byte {
	for _, p := range []*part{&t.client.user, &t.client.apiKey, &t.client.ip} {
		if all, next := p.append(dst, req, 0); next != 0 {
			return all
		}
	}
	return dst
}

// AppendAsker appends who asks for an answer under the rule: the user of the request, or else what the rule's key has of the
// client, without addresses and the model. So who is one client to the rule is one, whatever address or further name it comes
// with. It is false if neither the request nor the key has any of that.
func (c *Entry) AppendAsker(dst []byte, req *Request) ([]byte, bool) {
	if user, next := req.users(0); next != 0 {
		return ownUser.appendValue(dst, user), true
	}
	key, found := c.key, false
	if c.isByLevel() {
		key = key[0].levels
	}
	for i := range key {
		p := &key[i]
		if k := p.source.Kind; k != APIKey && k < Header || k == Attribute && p.source.Name == "model" {
			continue
		}
		if all, next := p.append(dst, req, 0); next != 0 {
			dst, found = all, true
		}
	}
	return dst, found
}

// AppendBlocked appends the client of a request that is on the block list, as AppendClient
// does. It appends nothing if none is.
func (t *Table) AppendBlocked(dst []byte, req *Request) []byte {
	if req.IP.IsValid() {
		if _, found := t.block.network(req.IP); found {
			dst, _ = t.client.ip.append(dst, req, 0)
			return dst
		}
	}
	for _, p := range []*part{&t.client.user, &t.client.apiKey} {
		for at := 0; ; {
			var value string
			if value, at = p.value(req, at); at == 0 {
				break
			}
			if t.block.has(p.source.Kind, value) {
				return p.appendValue(dst, value)
			}
		}
	}
	return dst
}
