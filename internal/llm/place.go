package llm

import "strings"

// place is a position in a document that somebody is interested in. Arrays are not
// positions: the elements of a list are where the list is.
type place struct {
	id   id
	deep bool      // names that are not known are the same place
	kids [16][]kid // by the length of their names, as far as that goes
}

type kid struct {
	name string // in lower case
	*place
}

// id says what is at a place; 0 is nothing.
type id uint8

// at makes a place of names and what is there. Names are compared without case, because some
// upstreams do.
func at(what id, kids ...any) *place {
	p := &place{id: what}
	for i := 0; i < len(kids); i += 2 {
		p.put(kids[i].(string), kids[i+1].(*place))
	}
	return p
}

func (p *place) put(name string, to *place) {
	at := len(name) % len(p.kids)
	p.kids[at] = append(p.kids[at], kid{strings.ToLower(name), to})
}

// kid is the place of a name. A table of few names by their length is faster than a map.
func (p *place) kid(name []byte) *place {
	if p == nil {
		return nil
	}
	kids := p.kids[len(name)%len(p.kids)]
	for i := range kids {
		if k := &kids[i]; string(name) == k.name || isFold(name, k.name) {
			return k.place
		}
	}
	if p.deep {
		return p
	}
	return nil
}

// isFold reports whether a name is this one in letters of either case. Only ASCII has two.
func isFold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func idOf(p *place) id {
	if p == nil {
		return 0
	}
	return p.id
}
