package rule

import "hash/maphash"

// edges are all ways from one node to the next by a name: a list of them, and a hash
// table with open addressing to find the place of one in the list. Nodes are in the
// list by value and equal names are shared, so that a step touches little memory
// that could be out of the cache.
type edges[T any] struct {
	slots []slot // a power of two; at most three quarters are taken
	list  []edge[T]
}

type slot struct {
	hash  uint32
	place uint32 // in the list, from 1; 0 is a free slot
}

type edge[T any] struct {
	name string
	node T
}

// owned is an edge and where it comes from.
type owned[T any] struct {
	owner uint32
	edge[T]
}

// newEdges makes the table for a list.
func newEdges[T any](seed maphash.Seed, list []owned[T]) edges[T] {
	size := 1
	for 3*size < 4*len(list)+4 {
		size *= 2
	}
	e := edges[T]{make([]slot, size), make([]edge[T], len(list))}
	for place, one := range list {
		e.list[place] = one.edge
		hash := mix(one.owner, maphash.String(seed, one.name))
		i := int(hash) & (size - 1)
		for e.slots[i].place != 0 {
			i = (i + 1) & (size - 1)
		}
		e.slots[i] = slot{hash, uint32(place + 1)}
	}
	return e
}

// mix makes the hash of an edge from those of its owner and its name. It keeps
// owners apart: of two edges with one name, equal hashes mean the same owner,
// because to multiply by an odd number loses nothing. So an edge need not know its
// owner. Hashes are seeded: nobody can make names that collide.
func mix(owner uint32, name uint64) uint32 {
	return uint32(name>>32) ^ uint32(name) ^ owner*0x9E3779B1
}

// find returns the node to which a name leads, or nil.
func (e *edges[T]) find(owner uint32, name string, nameHash uint64) *T {
	hash := mix(owner, nameHash)
	for i := int(hash); ; i++ {
		s := e.slots[i&(len(e.slots)-1)]
		if s.place == 0 {
			return nil
		}
		if s.hash != hash {
			continue
		}
		if one := &e.list[s.place-1]; one.name == name {
			return &one.node
		}
	}
}
