package match

import "hash/maphash"

// Index finds the rules whose conditions a request meets, at a cost that depends on
// the request and on how many rules it meets, not on how many there are.
//
// Paths that are spelt out are found at once, with the other rules for them if these are
// few. The others are a trie of segments, at
// each [junction] of which there are up to two groups of rules: those whose path
// ends here, and those that go on with /**. A group of more than a few rules is
// split by host, then by method, then by the attribute of each rule that the fewest
// others ask for; what is left to check is checked rule by rule.
//
// A request may go on both by name and by parameter from each junction. So it visits
// at most all junctions of a level, and at most 2^n on level n; real sets, in which
// few patterns overlap, have it visit one or two a level.
//
// Everything is small and in few places: with ten thousand rules it is waiting for
// memory that takes the time. So rules are numbers here, from 1.
type Index[T any] struct {
	places
	rules []T
	order func(T) (int, Route)
	at    func(T, Route) T
}

// Route is the most specific pattern of a rule that matches: its place in [Rule.Routes], from 1.
// It is 0 if that is not known, because the rule has no patterns or the path several readings.
type Route uint32

// places is where the rules of an index are found.
type places struct {
	ready   []*Rule  // nil for one that is left out
	wants   []uint64 // the methods of each rule, a bit each; 0 for all
	members []member // of each group, and a 0 behind them; the first group is empty

	seed      maphash.Seed
	anywhere  group  // rules without a path
	exact     uint32 // owner of the edges for whole paths
	root      *junction
	tails     []pattern
	junctions edges[junction]
	groups    edges[group]
	methods   []string // as in Compiler
	hosts     bool     // whether any rule asks for one

	ignoreCase bool
}

// junction is a node of the trie.
type junction struct {
	id    uint32    // owner of the edges to its children by name; 0 if it has none
	tail  uint32    // of places.tails, from 1, what must be passed to be here; 0 for nothing
	param *junction // child by {param}, or nil
	here  group     // for paths that end here
	rest  group     // for paths that go on with /**
}

// group is rules that one request may meet.
type group struct {
	at     uint32 // where in places.members the rules are that are tried one by one
	verify needs  // what is not known yet of at least one of them
	whole  bool   // of a path that is spelt out: no other group has rules for it
	split  *split // those that are not, or nil
}

// member is a rule in a group: its number, and, in the lower half, by which pattern it is there.
// In order, the most specific pattern of a rule is the first.
type member uint64

func newMember(number int32, route Route) member { return member(number)<<32 | member(route) }

func (m member) number() int32 { return int32(m >> 32) }

func (m member) route() Route { return Route(m) }

// unrouted is the member without its pattern.
func (m member) unrouted() member { return m >> 32 << 32 }

// needs are conditions of a rule besides its path.
type needs uint8

const (
	needHost needs = 1 << iota
	needMethod
	needAttributes
)

// split is rules by one of their conditions, and those without it in other.
type split struct {
	by    needs
	exact uint32 // by host: owner of the edges for whole names
	below uint32 // by host: owner of the edges for *.name, 0 for none
	depth int    // by host: the most labels that such a name has

	methods []group // by method: as its bit is numbered, up to the last that is asked for

	names  []attribute // by attribute: each name that is asked for
	byName map[string]int

	other group
}

// attribute is where rules are split by the value of one.
type attribute struct {
	name   string
	values uint32 // owner of the edges for values
	any    group  // those that any value will do for
}

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

// mix makes the hash of an edge from those of its owner and its name. It keeps owners
// apart: of two edges with one name, equal hashes mean the same owner, because to
// multiply by an odd number loses nothing. So an edge need not know its owner. Hashes
// are seeded, so that clients cannot choose names that collide.
func mix(owner uint32, name uint64) uint32 {
	return uint32(name>>32) ^ uint32(name) ^ owner*0x9E3779B1
}

// findEdge returns the node to which a name leads, or nil.
func (e *edges[T]) findEdge(owner uint32, name string, nameHash uint64) *T {
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
