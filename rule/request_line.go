package rule

import (
	"cmp"
	"unsafe"

	"github.com/weirhq/weir/internal/match"
)

// line is what a directory says of a request.
type line struct {
	in    *Directory // nil if none was asked
	said  bool       // what the request says itself takes precedence
	owned bool       // an API key of the request has a user
	tier  string
	at    [MaxLine]uint32 // places of clients in the directory
	count int
	more  []uint32 // of a request with several API keys or users
}

// Resolution is what a directory knows of a request.
type Resolution struct {
	Known   bool // it names a client of the directory, and no API key that is unknown
	Blocked bool // one of its clients is blocked
}

// Resolve looks the clients of the request up in a directory, so that rules know to whom they belong, and which tier
// they have: its API keys, then its users, then its attributes. What the directory says takes precedence over what the
// request says, unless said is true. A nil directory says nothing. The request must not be in use elsewhere.
func (r *Request) Resolve(d *Directory, said bool) (found Resolution) {
	if r.line.in != nil {
		r.line = line{}
	}
	if d == nil {
		return found
	}
	r.line.in, r.line.said = d, said
	unknown := r.begin(&ownAPIKey, &found)
	r.line.owned = r.line.has(ownUser.prefix)
	r.begin(&ownUser, &found)
	for i := 0; i < len(d.named) && len(r.Attributes) > 0; i++ {
		r.begin(&d.named[i], &found)
	}
	found.Known = found.Known && !unknown
	return found
}

// Parts of clients that requests name themselves.
var (
	ownUser   = part{source: Source{Kind: User}, prefix: "user:"}
	ownAPIKey = part{source: Source{Kind: APIKey}, prefix: prefixAPIKey, secret: true}
)

// begin adds the lines of the clients that the request names. It reports whether one of them is unknown.
func (r *Request) begin(p *part, found *Resolution) (unknown bool) {
	l := &r.line
	for before, from := l.count, 0; from != match.Only; {
		value, next := p.value(r, from)
		if next == 0 {
			break
		}
		from = next
		var buf [192]byte
		name := p.appendValue(buf[:0], value)
		at := l.in.indexOf(unsafe.String(unsafe.SliceData(name), len(name)))
		if at == 0 {
			unknown = true
			continue
		}
		found.Known = true
		l.addClient(at, before, found)
	}
	return unknown
}

// addClient adds a client and those that it belongs to, but for kinds that were there before.
func (l *line) addClient(at uint32, before int, found *Resolution) {
	for r := (*record)(nil); at != 0; at = r.parent {
		r = l.in.records.at(at)
		if l.tier == "" {
			l.tier = l.in.tiers[r.tier]
		}
		found.Blocked = found.Blocked || r.blocked
		known := false
		for i := range l.count {
			known = known || l.place(i) == at || i < before && l.record(i).kind == r.kind
		}
		switch {
		case known:
			continue
		case l.count < len(l.at):
			l.at[l.count] = at
		default:
			l.more = append(l.more, at)
		}
		l.count++
	}
}

// place is that of the i-th client.
func (l *line) place(i int) uint32 {
	if i < len(l.at) {
		return l.at[i]
	}
	return l.more[i-len(l.at)]
}

func (l *line) record(i int) *record { return l.in.records.at(l.place(i)) }

// placeOf is the place of a client in a directory, if it is one of the request; else 0.
func (r *Request) placeOf(d *Directory, name string) uint32 {
	for i := 0; r != nil && r.line.in == d && i < r.line.count; i++ {
		if r.line.record(i).name == name {
			return r.line.place(i)
		}
	}
	return 0
}

func (l *line) has(prefix string) bool {
	_, next := l.value(prefix, 0)
	return next != 0
}

// value is the client of a kind, at a place or behind it, and the place behind that.
func (l *line) value(prefix string, from int) (value string, next int) {
	for i := max(from, 0); i < l.count && from != match.Only; i++ {
		switch r := l.record(i); {
		case l.in.kinds[r.kind] != prefix:
		case next != 0:
			return value, next
		default:
			value, _ = unescapeValue(r.name[len(prefix):]) // it was read when it was loaded
			next = i + 1
		}
	}
	if next != 0 && from == 0 {
		next = match.Only
	}
	return value, next
}

// users is a user of the request, at a place or behind it, and the place behind that.
func (r *Request) users(from int) (string, int) {
	told := r.User != "" || len(r.OtherUsers) > 0
	if r.line.in == nil || told && (r.line.said || !r.line.owned) {
		return several(r.User, r.OtherUsers, from)
	}
	return r.line.value(ownUser.prefix, from)
}

// level is a client that an attribute names, such as one of a level above users and API keys: that of the directory, or the attribute.
func (r *Request) level(p *part, from int) (string, int) {
	if value := r.Attributes[p.source.Name]; value != "" && (r.line.said || !r.line.has(p.prefix)) {
		return OneValue(value, from)
	}
	return r.line.value(p.prefix, from)
}

// Client returns the user and the tier of the request: its own, or what a directory says of it; see [Request.Resolve].
func (r *Request) Client() (user, tier string) {
	user, _ = r.users(0)
	return user, r.tier()
}

func (r *Request) tier() string {
	switch {
	case r.line.in == nil:
		return r.Tier
	case r.line.said:
		return cmp.Or(r.Tier, r.line.tier)
	}
	return cmp.Or(r.line.tier, r.Tier)
}

// Owner returns the uppermost of the clients of the directory to whom the request belongs, "" if the directory knows none. It is
// false without a directory.
func (r *Request) Owner() (name string, ok bool) {
	for i := range r.line.count {
		if one := r.line.record(i); one.parent == 0 {
			return one.name, true
		}
	}
	return "", r.line.in != nil
}

// Lines returns the clients of the directory that the request has, each before those that it belongs to.
func (r *Request) Lines() (all []Client) {
	for i := range r.line.count {
		all = append(all, r.line.in.client(r.line.record(i)))
	}
	return all
}
