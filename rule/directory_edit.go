package rule

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// NewDirectory returns a directory without clients.
func NewDirectory() *Directory {
	d := startDirectory()
	d.close()
	return d
}

// startDirectory returns a directory without clients, to be changed.
func startDirectory() *Directory {
	d := &Directory{
		records: newPages[record](1), index: newPages[uint32](pageLen), mask: pageLen - 1, seed: maphash.MakeSeed(), end: 1,
		shared: newSharedValues(), kinds: make([]string, 1), order: newKindOrder(),
	}
	d.see()
	return d
}

// close ends the changes.
func (d *Directory) close() { d.records.owned, d.index.owned = nil, nil }

// Edit begins another version of the directory. What it costs depends on the number of changes, and hardly on that of the
// clients. The directory itself stays as it is.
func (d *Directory) Edit() *DirectoryEdit {
	next := *d
	next.records, next.index = d.records.fork(), d.index.fork()
	next.kinds, next.named = slices.Clip(d.kinds), slices.Clip(d.named)
	next.order.edges = maps.Clone(d.order.edges)
	return &DirectoryEdit{directory: &next}
}

// DirectoryEdit is a version of a directory that is being made. It is not safe for concurrent use.
type DirectoryEdit struct {
	directory *Directory
	searches  int  // of all clients
	fullKinds bool // a search has found clients of all kinds; only a removal can change that
}

// maxSearches bounds how often one edit looks at all clients.
const maxSearches = 16

// DirectoryFault tells what keeps a client from being entered or removed.
type DirectoryFault uint8

const (
	NoClient       DirectoryFault = iota // there is no such client
	NoParent                             // the parent is not in the directory
	LineCycle                            // it would belong to itself, or to two clients of one kind
	LineTooLong                          // there would be more than MaxLine clients in a line
	HasMembers                           // others belong to it
	DirectoryFull                        // there are MaxClients, or too many kinds of them
	EditTooComplex                       // too many clients that others belong to were moved in one edit
)

// DirectoryError reports a change that was not made. The message has a remedy.
type DirectoryError struct {
	Fault   DirectoryFault
	Message string
}

func (e *DirectoryError) Error() string { return e.Message }

func directoryError(fault DirectoryFault, format string, args ...any) error {
	return &DirectoryError{fault, fmt.Sprintf(format, args...)}
}

// Find returns a client as it is in this version. The name is as rules count it.
func (e *DirectoryEdit) Find(name string) (Client, bool) {
	d := e.directory
	at := d.indexOf(name)
	if at == 0 {
		return Client{}, false
	}
	return d.client(d.records.at(at)), true
}

// Directory returns the version, and ends the edit.
func (e *DirectoryEdit) Directory() *Directory {
	d := e.directory
	e.directory = nil
	if d.shared.isWasteful() {
		d.gather()
	}
	d.close()
	return d
}

// Put enters a client in the place of the one with its name, if there is one. The client comes from [ReadClient] or from a
// directory. The error is a [DirectoryError].
func (e *DirectoryEdit) Put(c Client) error {
	d := e.directory
	for _, p := range []struct {
		name string
		part *part
	}{{c.Name, &c.part}, {c.Parent, &c.above}} {
		if p.name == "" || p.part.prefix != "" {
			continue
		}
		var err error
		if _, *p.part, err = clientName(p.name); err != nil {
			return directoryError(NoClient, "%v", err)
		}
	}
	if !d.hasKinds(c.part) {
		if !e.fullKinds {
			if e.searches++; e.searches <= maxSearches {
				d.gather()
			}
		}
		if e.fullKinds = !d.hasKinds(c.part); e.fullKinds {
			return directoryError(DirectoryFull, "%s is one kind of clients too many; the maximum is %d", document.Quote(c.part.prefix), maxKinds)
		}
	}
	at, parent := d.indexOf(c.Name), d.indexOf(c.Parent)
	if c.Parent == c.Name {
		return directoryError(LineCycle, ownParent, document.Quote(c.Name), document.Quote(c.Name))
	}
	if c.Parent != "" && parent == 0 {
		return directoryError(NoParent, "%s is not in the directory; add it, or correct the name of the parent", document.Quote(c.Parent))
	}
	if err := e.checkLine(at, parent, &c); err != nil {
		return err
	}
	if at == 0 {
		if d.count == MaxClients {
			return directoryError(DirectoryFull, "there are %d clients, which is the maximum; delete those that say nothing", MaxClients)
		}
		at = d.enter(c.Name, d.kind(c.part))
	}
	d.fill(at, &c)
	d.setParent(at, parent)
	return nil
}

// Remove removes a client to which no others belong. The error is a [DirectoryError].
func (e *DirectoryEdit) Remove(name string) error {
	d := e.directory
	at := d.indexOf(name)
	if at == 0 {
		return errNoClient
	}
	if n := d.records.at(at).members; n > 0 {
		return directoryError(HasMembers, "%s has %s below it; move or delete what is below it first", document.Quote(name), notation.Count(int(n), "client"))
	}
	e.fullKinds = false
	d.setParent(at, 0)
	d.unindex(at)
	*d.records.edit(at) = record{parent: d.free}
	d.free = at
	d.count--
	return nil
}

var errNoClient = directoryError(NoClient, "there is no such client; add it first, or correct the name")

// What is wrong with lines.
const (
	ownParent = "%s belongs to %s, and so to itself; correct one parent in the cycle"
	sameKind  = "%s and %s above it are of the same kind, and a client belongs to one of each; give them names such as division:… and org:…"
	tooLong   = "%s has more than %d levels above it, or a cycle; a client and those above it are at most %d"
)

// checkLine checks those above a client that gets a parent, and those below it.
func (e *DirectoryEdit) checkLine(at, parent uint32, c *Client) error {
	d, kind := e.directory, e.directory.kind(c.part)
	above := 1
	for other := parent; other != 0; above++ {
		r := d.records.at(other)
		switch {
		case other == at:
			return directoryError(LineCycle, ownParent, document.Quote(c.Name), document.Quote(c.Parent))
		case r.kind == kind:
			return directoryError(LineCycle, sameKind, document.Quote(c.Name), document.Quote(r.name))
		case above >= MaxLine:
			return directoryError(LineTooLong, tooLong, document.Quote(c.Name), MaxLine-1, MaxLine)
		}
		other = r.parent
	}
	if r := d.records.at(at); at == 0 || parent == 0 || r.parent == parent || r.members == 0 || d.order.allows(kind, d.records.at(parent).kind) {
		return nil
	}
	if e.searches++; e.searches > maxSearches {
		return directoryError(EditTooComplex, "too many clients that others belong to get another parent in one go; send fewer changes at a time")
	}
	kinds, levels := d.below(at)
	for r := range d.line(parent) {
		if name := kinds[r.kind]; name != "" {
			return directoryError(LineCycle, sameKind, document.Quote(name), document.Quote(r.name))
		}
	}
	if above+levels > MaxLine {
		return directoryError(LineTooLong, "with those that belong to %s, there would be more than %d clients in a line", document.Quote(c.Name), MaxLine)
	}
	return nil
}

// below returns a client of each kind that belongs to this one, and how many levels there are of them.
func (d *Directory) below(at uint32) (kinds map[uint16]string, levels int) {
	kinds = map[uint16]string{}
	for _, r := range d.all {
		n := 0
		for other := r.parent; other != 0; other = d.records.at(other).parent {
			if n++; other == at {
				kinds[r.kind], levels = r.name, max(levels, n)
				break
			}
		}
	}
	return kinds, levels
}

// enter adds a client that is not there yet.
func (d *Directory) enter(name string, kind uint16) (at uint32) {
	if at = d.free; at != 0 {
		d.free = d.records.at(at).parent
	} else {
		at = d.end
		d.end++
		d.records.grow(int(d.end))
	}
	*d.records.edit(at) = record{name: strings.Clone(name), kind: kind}
	if d.count++; 4*uint64(d.count) <= 3*uint64(d.mask) {
		d.enterIndex(at)
		return at
	}
	size := 2 * (d.mask + 1)
	d.index, d.mask = newPages[uint32](int(size)), size-1
	for at := range d.all {
		d.enterIndex(at)
	}
	return at
}

func (d *Directory) home(at uint32) uint32 {
	return uint32(maphash.String(d.seed, d.records.at(at).name))
}

func (d *Directory) enterIndex(at uint32) {
	i := d.home(at)
	for *d.index.at(i & d.mask) != 0 {
		i++
	}
	*d.index.edit(i & d.mask) = at
}

// unindex closes the gap that a client leaves in the index, so that those behind it are found.
func (d *Directory) unindex(at uint32) {
	gap := d.home(at)
	for *d.index.at(gap & d.mask) != at {
		gap++
	}
	for i := gap + 1; ; i++ {
		other := *d.index.at(i & d.mask)
		if other == 0 {
			break
		}
		if (i-d.home(other))&d.mask >= (i-gap)&d.mask {
			*d.index.edit(gap & d.mask) = other
			gap = i
		}
	}
	*d.index.edit(gap & d.mask) = 0
}

// setParent lets a client belong to another one, or to nobody.
func (d *Directory) setParent(at, parent uint32) {
	old := d.records.at(at).parent
	if old == parent {
		return
	}
	r := d.records.edit(at)
	r.parent = parent
	if old != 0 {
		above := d.records.edit(old)
		above.members--
		d.order.count(r.kind, above.kind, -1)
	}
	if parent != 0 {
		above := d.records.edit(parent)
		above.members++
		d.order.count(r.kind, above.kind, +1)
	}
}

// fill writes what a client says itself.
func (d *Directory) fill(at uint32, c *Client) {
	s := d.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	r := d.records.edit(at)
	r.tier, r.note, r.author = s.tiers.text(c.Tier), s.notes.text(c.Note), s.authors.text(c.Stamp.By)
	r.dates = s.dates.number(dates{c.Zone, c.Starts}, dates{c.Zone, c.Starts})
	r.limits = s.limitSet(c.Limits)
	r.blocked, r.serial, r.written = c.Blocked, c.Stamp.Serial, 0
	if !c.Stamp.At.IsZero() {
		r.written = c.Stamp.At.UnixMilli()
	}
	d.see()
}

// see takes over what has come to the shared values. It needs their mutex, unless nobody else has them yet.
func (d *Directory) see() {
	s := d.shared
	d.tiers, d.dates, d.limitSets, d.notes, d.authors = s.tiers.all, s.dates.all, s.limits.all, s.notes.all, s.authors.all
}

// hasKinds adds the kind of a client. It is false if there are too many.
func (d *Directory) hasKinds(p part) bool {
	if p.prefix == "" || slices.Contains(d.kinds, p.prefix) {
		return true
	}
	if len(d.kinds) > maxKinds {
		return false
	}
	d.kinds = append(d.kinds, p.prefix)
	if p.source.Kind == Attribute || p.source.Kind == Level {
		d.named = append(d.named, p)
	}
	return true
}

func (d *Directory) kind(p part) uint16 { return uint16(slices.Index(d.kinds, p.prefix)) }

// gather makes the shared values again, of those that clients still have, and drops kinds of which there are no clients. It
// looks at all clients, but seldom: when there may be twice as many values as at the last time.
func (d *Directory) gather() {
	old := *d
	d.shared, d.order, d.kinds, d.named = newSharedValues(), newKindOrder(), make([]string, 1), nil
	s := d.shared
	limits := make([]uint32, len(old.limitSets))
	for at := range d.all {
		r := d.records.edit(at)
		r.tier, r.note, r.author = s.tiers.text(old.tiers[r.tier]), s.notes.text(old.notes[r.note]), s.authors.text(old.authors[r.author])
		r.dates = s.dates.number(old.dates[r.dates], old.dates[r.dates])
		if r.limits != 0 && limits[r.limits] == 0 {
			limits[r.limits] = s.limitSet(old.limitSets[r.limits])
		}
		r.limits = limits[r.limits]
		r.kind = d.kindAgain(old.kinds[r.kind], old.named)
	}
	for _, r := range d.all {
		if r.parent != 0 {
			d.order.count(r.kind, d.records.at(r.parent).kind, +1)
		}
	}
	s.atLast = s.size()
	d.see()
}

// kindAgain is the number of a kind that there was.
func (d *Directory) kindAgain(prefix string, named []part) uint16 {
	p := part{prefix: prefix}
	if i := slices.IndexFunc(named, func(p part) bool { return p.prefix == prefix }); i >= 0 {
		p = named[i]
	}
	d.hasKinds(p)
	return d.kind(p)
}
