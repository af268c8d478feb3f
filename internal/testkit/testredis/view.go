package testredis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// view is what one node of a cluster knows of all.
type view map[*Server]*node

// node is a line of CLUSTER NODES.
type node struct {
	id, master string // the master of a replica
	flags      []string
	owns       [][2]int // first and last slot
}

func (n *node) is(flag string) bool { return slices.Contains(n.flags, flag) }

// view asks any node that is up.
func (c *Cluster) view() (v view) {
	c.t.Helper()
	c.await("no node knows the cluster", func() (err error) {
		v, err = c.tryView()
		return err
	})
	return v
}

func (c *Cluster) tryView() (view, error) {
	alive := up(c.Nodes)
	if len(alive) == 0 {
		return nil, errors.New("no node is up")
	}
	return c.viewOf(alive[0])
}

// Owners says which slots each master serves, from the first to the last of each range, by
// the word of any node that is up.
func (c *Cluster) Owners() (map[*Server][][2]int, error) {
	v, err := c.tryView()
	if err != nil {
		return nil, err
	}
	owners := map[*Server][][2]int{}
	for s, n := range v {
		if len(n.owns) > 0 {
			owners[s] = n.owns
		}
	}
	return owners, nil
}

// viewOf asks one node. It must know exactly the other nodes of the cluster.
func (c *Cluster) viewOf(s *Server) (view, error) {
	reply, err := s.TryDo("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	v := view{}
	for line := range strings.Lines(reply) {
		words := strings.Fields(line)
		if len(words) < 8 {
			return nil, fmt.Errorf("%s: CLUSTER NODES has the line %q", s.Addr, line)
		}
		n := &node{id: words[0], flags: strings.Split(words[2], ","), master: words[3]}
		server := c.at(words[1])
		if server == nil || n.is("handshake") || n.is("noaddr") {
			return nil, fmt.Errorf("%s does not know all yet: %s", s.Addr, line)
		}
		for _, word := range words[8:] {
			if strings.HasPrefix(word, "[") {
				continue // a slot on its way
			}
			first, last, ranged := strings.Cut(word, "-")
			if !ranged {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil {
				return nil, fmt.Errorf("%s: CLUSTER NODES has the slots %q", s.Addr, word)
			}
			n.owns = append(n.owns, [2]int{from, to})
		}
		v[server] = n
	}
	if len(v) != len(c.Nodes) {
		return nil, fmt.Errorf("%s knows %d nodes", s.Addr, len(v))
	}
	return v, nil
}

// at finds a server by what CLUSTER NODES calls it, host:port@port. A node that no
// other node has contacted yet does not know its own host.
func (c *Cluster) at(name string) *Server {
	addr, _, _ := strings.Cut(name, "@")
	_, port, _ := strings.Cut(addr, ":")
	for _, s := range c.Nodes {
		if strings.HasSuffix(s.Addr, ":"+port) {
			return s
		}
	}
	return nil
}

// owner returns the node that serves the slot, or nil.
func (v view) owner(slot int) *Server {
	for s, n := range v {
		for _, o := range n.owns {
			if o[0] <= slot && slot <= o[1] {
				return s
			}
		}
	}
	return nil
}

// replicaOf is a replica of the server that is up, or nil.
func (v view) replicaOf(master *Server) *Server {
	for s, n := range v {
		if n.master == v[master].id && s.up() {
			return s
		}
	}
	return nil
}
