package rule

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// Directory says to whom clients belong, which tier they have, and their own limits. It is immutable.
type Directory struct {
	records []record
	index   []uint32 // places of records by the hash of the name, from 1; 0 is free
	seed    maphash.Seed

	// What many records share. The first of each is for none.
	kinds     []string // "user:", "attr:customer:"
	tiers     []string
	dates     []dates
	limitSets [][]OwnLimit
	notes     []string

	named []part // that name clients
}

// MaxLine is the maximum number of clients in a line upwards, such as an API key, its user, team and organization.
const MaxLine = 6

// MaxClients is the maximum number of clients in a directory.
const MaxClients = 2_000_000

// record is a client. Its fields are small, because there are many.
type record struct {
	name                      string
	parent                    uint32 // from 1; 0 is none
	tier, dates, limits, note uint32
	kind                      uint16
	blocked                   bool
}

// dates are where periods of the calendar begin, and in which time zone.
type dates struct{ zone, starts string }

// Len returns the number of clients.
func (d *Directory) Len() int { return len(d.records) }

// find returns the place of a client, from 1, or 0.
func (d *Directory) find(name string) uint32 {
	for i := maphash.String(d.seed, name); ; i++ {
		at := d.index[i&uint64(len(d.index)-1)]
		if at == 0 || d.records[at-1].name == name {
			return at
		}
	}
}

func (d *Directory) findBytes(name []byte) uint32 {
	return d.find(unsafe.String(unsafe.SliceData(name), len(name)))
}

// add adds a client whose name is not there yet.
func (d *Directory) addRecord(r record) uint32 {
	d.records = append(d.records, r)
	if 4*len(d.records) > 3*len(d.index) {
		d.index = make([]uint32, 2*len(d.index))
		for i := range d.records {
			d.enter(uint32(i + 1))
		}
	} else {
		d.enter(uint32(len(d.records)))
	}
	return uint32(len(d.records))
}

func (d *Directory) enter(at uint32) {
	i := maphash.String(d.seed, d.records[at-1].name)
	for d.index[i&uint64(len(d.index)-1)] != 0 {
		i++
	}
	d.index[i&uint64(len(d.index)-1)] = at
}

// line yields a client and those that it belongs to.
func (d *Directory) line(at uint32) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for at != 0 {
			r := &d.records[at-1]
			if !yield(r) {
				return
			}
			at = r.parent
		}
	}
}

// Line returns a client and those that it belongs to, from below; none if it is unknown. The name is as
// people write it.
func (d *Directory) Line(name string) (line []Client) {
	canonical, _, err := clientName(name)
	if err != nil {
		return nil
	}
	for r := range d.line(d.find(canonical)) {
		line = append(line, d.client(r))
	}
	return line
}

func (d *Directory) client(r *record) Client {
	c := Client{
		Name: r.name, Tier: d.tiers[r.tier], Zone: d.dates[r.dates].zone, Starts: d.dates[r.dates].starts,
		Limits: d.limitSets[r.limits], Blocked: r.blocked, Note: d.notes[r.note],
	}
	if r.parent != 0 {
		c.Parent = d.records[r.parent-1].name
	}
	return c
}

// Limited yields all clients with limits of their own.
func (d *Directory) Limited() iter.Seq2[string, []OwnLimit] {
	return func(yield func(string, []OwnLimit) bool) {
		for i := range d.records {
			if r := &d.records[i]; r.limits != 0 && !yield(r.name, d.limitSets[r.limits]) {
				return
			}
		}
	}
}

// Tiers returns the tiers that clients have, and Kinds what clients there are, as in "user:" and "org:".
func (d *Directory) Tiers() []string { return d.tiers[1:] }
func (d *Directory) Kinds() []string { return d.kinds[1:] }

// Inherited is what a client has from those that it belongs to, where it says nothing itself.
type Inherited struct {
	Tier         string
	Zone, Starts string
	Blocked      bool
}

// inherited goes upwards from a client. The nearest that says something wins.
func (d *Directory) inherited(at uint32) (in Inherited) {
	for at != 0 { // without the iterator, which would allocate
		r := &d.records[at-1]
		in.Tier = cmp.Or(in.Tier, d.tiers[r.tier])
		in.Zone, in.Starts = cmp.Or(in.Zone, d.dates[r.dates].zone), cmp.Or(in.Starts, d.dates[r.dates].starts)
		in.Blocked = in.Blocked || r.blocked
		at = r.parent
	}
	return in
}

// Counted is what a directory says of a client that a rule counts.
type Counted struct {
	Name   string // of the client
	Limits []OwnLimit
	Inherited
}

// Counts returns what the directory says of an identity under a rule, which is the result of [Entry.Identity]. If
// several parts of it are known clients, the one that belongs to the others counts.
func (d *Directory) Counts(c *Entry, identity string) (found Counted, ok bool) {
	at := uint32(0)
	if len(c.key) == 1 {
		at = d.find(identity)
	} else {
		for _, piece := range splitIdentity(identity) {
			if other := d.find(piece); other != 0 && (at == 0 || d.depth(other) > d.depth(at)) {
				at = other
			}
		}
	}
	if at == 0 {
		return Counted{}, false
	}
	r := &d.records[at-1]
	return Counted{r.name, d.limitSets[r.limits], d.inherited(at)}, true
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
