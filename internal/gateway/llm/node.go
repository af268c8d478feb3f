package llm

import (
	"bytes"
	"unicode/utf8"
)

// node is a part of a document that somebody is interested in. Arrays are no nodes:
// the elements of a list are at the node of the list.
type node struct {
	id   id
	once bool      // an object has at most one such name, written exactly so
	rest *node     // of names that are not known; or nil
	kids [16][]kid // by the length of their names, as far as that goes
}

type kid struct {
	name []byte
	*node
}

// id says what a node is; 0 is nothing.
type id uint8

// at makes a node of names and what is there.
func at(what id, kids ...any) *node {
	p := &node{id: what}
	for i := 0; i < len(kids); i += 2 {
		p.put(kids[i].(string), kids[i+1].(*node))
	}
	return p
}

// once is a node that an object has at most once. A client could send two, or write it in another way,
// for upstreams that read another one than we do.
func once(what id, kids ...any) *node {
	p := at(what, kids...)
	p.once = true
	return p
}

// deep is a node with all that is below it.
func deep(what id) *node {
	p := &node{id: what}
	p.rest = p
	return p
}

func (p *node) put(name string, to *node) {
	at := len(name) % len(p.kids)
	p.kids[at] = append(p.kids[at], kid{[]byte(name), to})
}

// kid is the node of a name. It is not exact if only some upstreams take it for the name of the node:
// Go's do so without regard to case, which letters beyond ASCII have, too. A table of few names by their
// length is faster than a map.
func (p *node) kid(name []byte) (to *node, exact bool) {
	if p == nil {
		return nil, true
	}
	for _, k := range p.kids[len(name)%len(p.kids)] {
		if string(name) == string(k.name) {
			return k.node, true
		}
	}
	for _, c := range name {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return p.folded(name)
		}
	}
	return p.rest, true
}

// folded is kid for a name that may be another one in other letters.
func (p *node) folded(name []byte) (to *node, exact bool) {
	for _, kids := range p.kids {
		for _, k := range kids {
			if bytes.EqualFold(name, k.name) {
				return k.node, false
			}
		}
	}
	return p.rest, true
}

func idOf(p *node) id {
	if p == nil {
		return 0
	}
	return p.id
}
