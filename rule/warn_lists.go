package rule

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weirhq/weir/internal/document"
)

func (p *parser) warnLists(exempt *list) {
	for _, l := range p.lists {
		p.warnEverybody(l)
		p.warnSuperfluous(l)
		p.warnClear(l)
		if l.name == "block" {
			p.warnExempt(l, exempt)
		}
	}
}

// warnEverybody finds lists that contain all clients.
func (p *parser) warnEverybody(l *pendingList) {
	for _, ip := range l.ips {
		if ip.value.Bits() != 0 {
			continue
		}
		family := "IPv6"
		if ip.value.Addr().Is4() {
			family = "IPv4"
		}
		if l.name == "exempt" {
			p.warnf("W001", ip.at, "exempt: ip", "%s contains every %s address, so no rule applies to these clients; list only the networks that you trust", ip.value, family)
		} else {
			p.warnf("W004", ip.at, "block: ip", "%s contains every %s address, so all of these clients are blocked; list only the networks to block", ip.value, family)
		}
	}
}

// warnSuperfluous finds entries that change nothing.
func (p *parser) warnSuperfluous(l *pendingList) {
	sorted := slices.Clone(l.ips)
	slices.SortStableFunc(sorted, func(a, b placed[netip.Prefix]) int {
		return cmp.Or(a.value.Addr().Compare(b.value.Addr()), cmp.Compare(a.value.Bits(), b.value.Bits()))
	})
	var kept placed[netip.Prefix]
	for _, ip := range sorted {
		if kept.value == ip.value {
			p.warnf("W012", ip.at, l.name+": ip", "%s is in the list twice, first in line %d; remove one", networkText(ip.value), kept.at.Line)
			continue
		}
		if kept.value.IsValid() && kept.value.Contains(ip.value.Addr()) {
			p.warnf("W012", ip.at, l.name+": ip", "%s is within %s of line %d; remove it", networkText(ip.value), networkText(kept.value), kept.at.Line)
			continue
		}
		kept = ip
	}
	p.warnTwice(l.name+": user", l.users)
	p.warnTwice(l.name+": api_key", l.keys)
}

func (p *parser) warnTwice(field string, values []placed[string]) {
	first := make(map[string]int, len(values))
	for i, v := range values {
		if before, twice := first[v.value]; twice {
			p.warnf("W012", v.at, field, "this is in the list twice, first in line %d; remove one", values[before].at.Line)
			continue
		}
		first[v.value] = i
	}
}

// warnClear finds API keys that are not hashed.
func (p *parser) warnClear(l *pendingList) {
	for _, k := range l.keys {
		if !isHash(k.value) {
			p.warnf("W013", k.at, l.name+": api_key", "the API key is in plain text, also in the history and every copy of the rules; write its hash, which begins with sha256:")
			return
		}
	}
}

// warnExempt finds whom the list cannot block, because exempt goes first.
func (p *parser) warnExempt(l *pendingList, exempt *list) {
	for _, ip := range l.ips {
		if network, found := exempt.network(ip.value.Addr()); found && network.Bits() <= ip.value.Bits() {
			p.warnf("W003", ip.at, "block: ip", "%s is exempt as part of %s, so it is not blocked; remove it from one of the lists", networkText(ip.value), networkText(network))
		}
	}
	for _, u := range l.users {
		if exempt.has(User, u.value) {
			p.warnf("W003", u.at, "block: user", "%s is exempt, so it is not blocked; remove it from one of the lists", document.Quote(u.value))
		}
	}
	for _, k := range l.keys {
		if exempt.hasKey(k.value) {
			p.warnf("W003", k.at, "block: api_key", "this key is exempt, so it is not blocked; remove it from one of the lists")
		}
	}
}

// hasKey is whether an API key, in clear or hashed, is on the list.
func (l *list) hasKey(key string) bool {
	if !isHash(key) {
		key = HashAPIKey(key)
	}
	_, found := l.apiKeys[key]
	return found
}

// warnOverrides finds overrides that are never asked for, or that tell a key.
func (p *parser) warnOverrides(r *Rule, overrides []placed[string], exempt *list) {
	told := false
	for _, o := range overrides {
		pieces := splitIdentity(o.value)
		if len(pieces) != len(r.Key) {
			continue
		}
		for i, s := range r.Key {
			prefix := Source{Kind: s.Kind, Name: s.Name}.String() + ":"
			if len(pieces[i]) <= len(prefix) {
				continue
			}
			value := pieces[i][len(prefix):]
			if s.Kind == APIKey && !isHash(value) && !told {
				p.warnf("W013", o.at, "overrides", "the API key is in plain text, also in the history and every copy of the rules; write its hash, as in api_key:sha256:…")
				told = true
			}
			if isExempt(exempt, s.Kind, value) {
				p.warnf("W002", o.at, "overrides", "this client is exempt, so no limit applies to it; remove the override or the exemption")
			}
		}
	}
}

func isExempt(exempt *list, kind SourceKind, value string) bool {
	switch kind {
	case IP:
		client, err := netip.ParsePrefix(value)
		if err != nil {
			ip, err := netip.ParseAddr(value)
			return err == nil && exempt.contains(&Request{IP: ip}, true)
		}
		network, found := exempt.network(client.Addr())
		return found && network.Bits() <= client.Bits()
	case User:
		plainText, err := unescapeValue(value)
		return err == nil && exempt.has(User, plainText)
	case APIKey:
		return exempt.hasKey(value)
	}
	return false
}
