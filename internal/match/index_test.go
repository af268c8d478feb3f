package match

import (
	"fmt"
	"slices"
	"testing"
)

// However many rules there are, in the shapes that people have, none is tried one
// by one in a long list. That is why the cost of a match does not grow; test/bench/rules
// measures that it does not.
func TestGroupsStaySmall(t *testing.T) {
	const n = 1000
	for shape, match := range map[string]func(i int) Conditions{
		"exact paths": func(i int) Conditions { return Conditions{Paths: []string{fmt.Sprint("/api/", i)}} },
		"prefixes":    func(i int) Conditions { return Conditions{Paths: []string{fmt.Sprintf("/api/%d/**", i)}} },
		"parameters":  func(i int) Conditions { return Conditions{Paths: []string{fmt.Sprintf("/{t}/%d/{id}", i)}} },
		"hosts": func(i int) Conditions {
			return Conditions{Paths: []string{"/api/**"}, Hosts: []string{fmt.Sprintf("t%d.com", i)}}
		},
		"names below": func(i int) Conditions { return Conditions{Hosts: []string{fmt.Sprintf("*.t%d.com", i)}} },
		"many hosts":  func(i int) Conditions { return Conditions{Hosts: hostNames(i, 70), Methods: []string{"GET"}} },
		"an attribute": func(i int) Conditions {
			return Conditions{Attributes: map[string][]string{"resource": {fmt.Sprint(i)}}}
		},
		"any attribute": func(i int) Conditions { return Conditions{Attributes: map[string][]string{fmt.Sprint(i): nil}} },
		"a grid": func(i int) Conditions {
			return Conditions{Methods: []string{"GET"}, Attributes: map[string][]string{"row": {fmt.Sprint(i / 30)}, "column": {fmt.Sprint(i % 30)}}}
		},
		"one rare of two": func(i int) Conditions {
			return Conditions{Attributes: map[string][]string{"action": {"login"}, "tenant": {fmt.Sprint(i)}}}
		},
		"hosts and methods": func(i int) Conditions {
			return Conditions{Hosts: []string{fmt.Sprintf("t%d.com", i/50)}, Methods: []string{fmt.Sprint("M", i%50)}}
		},
		"all of it": func(i int) Conditions {
			return Conditions{
				Paths: []string{"/api/{x}", "/{y}/**", "/exact"}, Hosts: []string{fmt.Sprintf("t%d.com", i/20)},
				Methods: []string{"GET", "POST"}, Attributes: map[string][]string{"a": {fmt.Sprint(i % 20)}},
			}
		},
	} {
		x := placesOf(t, n, match)
		longest := 0
		x.eachGroup(func(g group) {
			longest = max(longest, x.length(g))
		})
		if longest > few {
			t.Errorf("%s: a group of %d rules is tried one by one", shape, longest)
		}
	}
}

func placesOf(t *testing.T, n int, match func(i int) Conditions) places {
	t.Helper()
	var c Compiler
	var ready []*Rule
	for i := range n {
		r, err := c.Compile(match(i))
		if err != nil {
			t.Fatal(err)
		}
		ready = append(ready, r)
	}
	return c.places(ready)
}

func hostNames(i, n int) (names []string) {
	for j := range n {
		names = append(names, fmt.Sprintf("h%d.t%d.com", j, i))
	}
	return names
}

func (x *places) length(g group) int {
	return slices.Index(x.members[g.at:], 0)
}

func (x *places) eachGroup(f func(group)) {
	var visit func(group)
	visit = func(g group) {
		f(g)
		if g.split == nil {
			return
		}
		s := g.split
		visit(s.other)
		for _, m := range s.methods {
			visit(m)
		}
		for _, a := range s.names {
			visit(a.any)
		}
	}
	visit(x.anywhere)
	visit(x.root.here)
	visit(x.root.rest)
	for j := x.root.param; j != nil; j = j.param {
		visit(j.here)
		visit(j.rest)
	}
	for _, e := range x.junctions.list {
		for j := &e.node; j != nil; j = j.param {
			visit(j.here)
			visit(j.rest)
		}
	}
	for _, e := range x.groups.list {
		visit(e.node)
	}
}

// A rule whose lists multiply is entered by some of them only.
func TestListsDoNotMultiply(t *testing.T) {
	const n = 100
	x := placesOf(t, n, func(i int) Conditions {
		return Conditions{Paths: []string{"/a/**", "/b/**", "/c/**", "/d/**"}, Hosts: hostNames(i, 50), Methods: []string{"A", "B", "C", "D", "E"}, Attributes: map[string][]string{"x": hostNames(i, 50)}}
	})
	entries := 0
	x.eachGroup(func(g group) {
		entries += x.length(g)
	})
	if most := maxEntries * n; entries > most {
		t.Errorf("%d entries of %d rules, want at most %d", entries, n, most)
	}
}
