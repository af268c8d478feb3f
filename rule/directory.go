package rule

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// Directory says to whom clients belong, which tier they have, and their own limits. It is immutable: [Directory.Edit] makes
// another one, which shares with it what is equal.
type Directory struct {
	records pages[record] // from 1; 0 is nobody
	index   pages[uint32] // places of records by the hash of the name; 0 is free
	mask    uint32        // of places in the index
	seed    maphash.Seed
	count   int
	end     uint32 // behind the last record
	free    uint32 // the first record that nobody has; its parent is the next

	// What many records share, as far as this version knows it. The first of each is for none.
	shared    *sharedValues
	kinds     []string // "user:", "attr:customer:"
	tiers     []string
	dates     []dates
	limitSets [][]OwnLimit
	notes     []string
	authors   []string

	named []part // that name clients
	order kindOrder
}

// MaxLine is the maximum number of clients in a line upwards, such as an API key, its user, team and organization.
const MaxLine = 6

// MaxClients is the maximum number of clients in a directory.
const MaxClients = 2_000_000

// record is a client. Its fields are small, because there are many.
type record struct {
	name                              string
	serial                            uint64
	written                           int64  // when, in milliseconds
	parent                            uint32 // 0 is none
	tier, dates, limits, note, author uint32
	members                           uint32 // how many clients belong to it directly
	kind                              uint16
	blocked                           bool
}

// dates are where periods of the calendar begin, and in which time zone.
type dates struct{ zone, starts string }

// Len returns the number of clients.
func (d *Directory) Len() int { return d.count }

// indexOf returns the place of a client, or 0.
func (d *Directory) indexOf(name string) uint32 {
	for i := uint32(maphash.String(d.seed, name)); ; i++ {
		at := *d.index.at(i & d.mask)
		if at == 0 || d.records.at(at).name == name {
			return at
		}
	}
}

// line yields a client and those that it belongs to.
func (d *Directory) line(at uint32) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for at != 0 {
			r := d.records.at(at)
			if !yield(r) {
				return
			}
			at = r.parent
		}
	}
}

// all yields all records.
func (d *Directory) all(yield func(uint32, *record) bool) {
	for at := uint32(1); at < d.end; at++ {
		if r := d.records.at(at); r.name != "" && !yield(at, r) {
			return
		}
	}
}

// Line returns a client and those that it belongs to, from below; none if it is unknown. The name is as
// people write it.
func (d *Directory) Line(name string) (line []Client) {
	canonical, err := ClientName(name)
	if err != nil {
		return nil
	}
	for r := range d.line(d.indexOf(canonical)) {
		line = append(line, d.client(r))
	}
	return line
}

// All yields all clients, in no order.
func (d *Directory) All(yield func(Client) bool) {
	for _, r := range d.all {
		if !yield(d.client(r)) {
			return
		}
	}
}

func (d *Directory) client(r *record) Client {
	c := Client{
		Name: r.name, Tier: d.tiers[r.tier], Zone: d.dates[r.dates].zone, Starts: d.dates[r.dates].starts,
		Limits: d.limitSets[r.limits], Blocked: r.blocked, Note: d.notes[r.note],
		Stamp: Stamp{Serial: r.serial, By: d.authors[r.author]},
	}
	if r.written != 0 {
		c.Stamp.At = time.UnixMilli(r.written).UTC()
	}
	if r.parent != 0 {
		c.Parent = d.records.at(r.parent).name
	}
	return c
}

// Limited yields all clients with limits of their own.
func (d *Directory) Limited() iter.Seq2[string, []OwnLimit] {
	return func(yield func(string, []OwnLimit) bool) {
		for _, r := range d.all {
			if r.limits != 0 && !yield(r.name, d.limitSets[r.limits]) {
				return
			}
		}
	}
}

// Tiers returns how many clients have each tier of their own. It looks at all clients.
func (d *Directory) Tiers() map[string]int {
	counts := make([]int, len(d.tiers))
	for _, r := range d.all {
		counts[r.tier]++
	}
	tiers := map[string]int{}
	for i, n := range counts[1:] {
		if n > 0 {
			tiers[d.tiers[i+1]] = n
		}
	}
	return tiers
}

// Counted is what a directory says of a client that a rule counts; the tier and the dates may be of those that it belongs to.
type Counted struct {
	Name               string // of the client
	Limits             []OwnLimit
	Tier, Zone, Starts string
}

// Counts returns what the directory says of an identity under a rule, which is the result of [Entry.Identity] for a request; the
// request is only to find it faster, and can be nil. If several parts of it are known clients, the one that belongs to the others counts.
func (d *Directory) Counts(c *Entry, identity string, req *Request) (found Counted, ok bool) {
	at := uint32(0)
	if len(c.key) == 1 {
		if at = req.placeOf(d, identity); at == 0 {
			at = d.indexOf(identity)
		}
	} else {
		for _, piece := range splitIdentity(identity) {
			if other := d.indexOf(piece); other != 0 && (at == 0 || d.depth(other) > d.depth(at)) {
				at = other
			}
		}
	}
	if at == 0 {
		return Counted{}, false
	}
	r := d.records.at(at)
	found.Name, found.Limits = r.name, d.limitSets[r.limits]
	for ; at != 0; at = r.parent { // without the iterator, which would allocate
		if r = d.records.at(at); found.Tier == "" {
			found.Tier = d.tiers[r.tier]
		}
		if r.dates != 0 {
			found.Zone, found.Starts = cmp.Or(found.Zone, d.dates[r.dates].zone), cmp.Or(found.Starts, d.dates[r.dates].starts)
		}
	}
	return found, true
}

func (d *Directory) depth(at uint32) (n int) {
	for range d.line(at) {
		n++
	}
	return n
}

// Of returns the client's own quota under a rule, if it has one.
func (c *Counted) Of(rule string) (*Quota, bool) {
	i := slices.IndexFunc(c.Limits, func(l OwnLimit) bool { return l.Rule == rule })
	if i < 0 {
		return nil, false
	}
	return &c.Limits[i].Quota, true
}

const levelNames = "write up to 32 lower-case letters, digits, dashes and underscores, such as org or team, that no other part of a key is called"

// isLevelName reports whether a level can have this name. No other part of a key has.
func isLevelName(name string) bool {
	return name != "" && len(name) <= 32 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" && name[0] >= 'a' && name[0] <= 'z' && !slices.Contains(sources.names, name)
}

// Counts reports whether the rule counts by the client with this name, alone or together with something else.
func (c *Entry) Counts(name string) bool {
	if len(c.levels) > 0 {
		return c.levelOf(name) != nil
	}
	return slices.ContainsFunc(c.key, func(p part) bool { return len(name) > len(p.prefix) && strings.HasPrefix(name, p.prefix) })
}

// TierAt returns the tier by which the rule limits a client of a directory, whose request has another one. At a level it is
// that of the client or of those above it: two keys with other tiers would otherwise give their organization two budgets.
func (c *Entry) TierAt(found Counted, tier string) string {
	if len(c.levels) > 0 {
		return found.Tier
	}
	return tier
}

// Dated returns limits with periods that begin in another time zone or at another time, as far as they follow the calendar.
func (c *Entry) Dated(limits []*weir.Compiled, zone, starts string) []*weir.Compiled {
	out := slices.Clone(limits)
	for i, limit := range limits {
		if !limit.FollowsCalendar() {
			continue
		}
		l := limit.Limit()
		if weir.StartsFor(l.Period, starts) {
			l.Starts = starts
		}
		if zone != "" {
			l.Zone, _ = notation.LoadZone(zone) // which was found when it was read
		}
		if dated, err := l.Compile(); err == nil { // a valid start and zone keep it valid
			out[i] = dated
		}
	}
	return out
}
