package rule

import (
	"net/netip"

	"github.com/weirhq/weir/internal/document"
)

// pendingList is exempt or block, with what stands where.
type pendingList struct {
	name  string
	at    document.Place
	ips   []placed[netip.Prefix]
	users []placed[string]
	keys  []placed[string]
}

type placed[T any] struct {
	value T
	at    document.Place
}

// list reads exempt or block. Nothing at all is an empty list.
func (p *parser) list(name string, e *document.Element) (l List) {
	pl := &pendingList{name: name}
	p.lists = append(p.lists, pl)
	if e == nil || e.Kind == document.Nothing {
		return l
	}
	pl.at = e.Place
	f := p.fields(e, name, listFields)
	for _, v := range p.listValues(f["ip"], name+": ip") {
		if network, ok := p.network(v, name+": ip"); ok {
			pl.ips = append(pl.ips, placed[netip.Prefix]{network, v.Place})
			l.IPs = append(l.IPs, network)
		}
	}
	pl.users, l.Users = placedTexts(p.listValues(f["user"], name+": user"))
	if e := f["api_key"]; e != nil {
		p.hide(e)
	}
	pl.keys, l.APIKeys = placedTexts(p.listValues(f["api_key"], name+": api_key"))
	return l
}

// placedTexts are values with and without their places.
func placedTexts(values []*document.Element) (at []placed[string], texts []string) {
	if len(values) == 0 {
		return nil, nil
	}
	at, texts = make([]placed[string], len(values)), make([]string, len(values))
	for i, v := range values {
		at[i], texts[i] = placed[string]{v.Text, v.Place}, v.Text
	}
	return at, texts
}

// listValues is texts for a list that may be empty.
func (p *parser) listValues(e *document.Element, field string) []*document.Element {
	if e == nil || e.Kind == document.Nothing || e.Kind == document.List && len(e.Items) == 0 {
		return nil
	}
	return p.texts(e, field, maxText)
}

// hide keeps API keys out of excerpts.
func (p *parser) hide(e *document.Element) {
	for _, v := range append(e.Items, e) {
		if !isHash(v.Text) {
			p.quoter.Hide(v.Place, v.Text)
		}
	}
}

// network reads an address or a network.
func (p *parser) network(e *document.Element, field string) (netip.Prefix, bool) {
	if ip, err := netip.ParseAddr(e.Text); err == nil {
		if ip.Zone() != "" {
			p.errorf("E018", e.Place, field, "%s has a zone, which is valid on one machine only; write %s", document.Quote(e.Text), ip.WithZone(""))
			return netip.Prefix{}, false
		}
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	network, err := netip.ParsePrefix(e.Text)
	if err != nil {
		p.errorf("E018", e.Place, field, "%s is not an address or a network; write for example 192.0.2.7 or 10.0.0.0/8", document.Quote(e.Text))
		return netip.Prefix{}, false
	}
	if masked := network.Masked(); masked != network {
		p.errorf("E018", e.Place, field, "%s has host bits set beyond its /%d; write %s for the network, or %s for one address", network, network.Bits(), masked, network.Addr())
		return netip.Prefix{}, false
	}
	return canonicalNetwork(network), true
}
