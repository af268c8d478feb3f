package rule

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
