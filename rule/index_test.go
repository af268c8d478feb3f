package rule

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// However many rules there are, in the shapes that people have, none is tried one
// by one in a long list. That is why the cost of a match does not grow; test/bench/rules
// measures that it does not.
func TestGroupsStaySmall(t *testing.T) {
	const n = 1000
	for shape, match := range map[string]func(i int) Match{
		"exact paths": func(i int) Match { return Match{Paths: []string{fmt.Sprint("/api/", i)}} },
		"prefixes":    func(i int) Match { return Match{Paths: []string{fmt.Sprintf("/api/%d/**", i)}} },
		"parameters":  func(i int) Match { return Match{Paths: []string{fmt.Sprintf("/{t}/%d/{id}", i)}} },
		"hosts": func(i int) Match {
			return Match{Paths: []string{"/api/**"}, Hosts: []string{fmt.Sprintf("t%d.com", i)}}
		},
		"names below":   func(i int) Match { return Match{Hosts: []string{fmt.Sprintf("*.t%d.com", i)}} },
		"many hosts":    func(i int) Match { return Match{Hosts: hostNames(i, 70), Methods: []string{"GET"}} },
		"an attribute":  func(i int) Match { return Match{Attributes: map[string][]string{"resource": {fmt.Sprint(i)}}} },
		"any attribute": func(i int) Match { return Match{Attributes: map[string][]string{fmt.Sprint(i): nil}} },
		"a grid": func(i int) Match {
			return Match{Methods: []string{"GET"}, Attributes: map[string][]string{"row": {fmt.Sprint(i / 30)}, "column": {fmt.Sprint(i % 30)}}}
		},
		"one rare of two": func(i int) Match {
			return Match{Attributes: map[string][]string{"action": {"login"}, "tenant": {fmt.Sprint(i)}}}
		},
		"hosts and methods": func(i int) Match {
			return Match{Hosts: []string{fmt.Sprintf("t%d.com", i/50)}, Methods: []string{fmt.Sprint("M", i%50)}}
		},
		"all of it": func(i int) Match {
			return Match{
				Paths: []string{"/api/{x}", "/{y}/**", "/exact"}, Hosts: []string{fmt.Sprintf("t%d.com", i/20)},
				Methods: []string{"GET", "POST"}, Attributes: map[string][]string{"a": {fmt.Sprint(i % 20)}},
			}
		},
	} {
		var set Set
		for i := range n {
			set.Rules = append(set.Rules, Rule{
				ID: fmt.Sprint(i), Match: match(i), Key: []Source{{Kind: Global}}, Quota: Quota{Rates: []Rate{{1, time.Second}}},
			})
		}
		table, err := Compile(&set, Options{})
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		table.index.eachGroup(func(g group) {
			longest = max(longest, table.index.length(g))
		})
		if longest > few {
			t.Errorf("%s: a group of %d rules is tried one by one", shape, longest)
		}
	}
}

func hostNames(i, n int) (names []string) {
	for j := range n {
		names = append(names, fmt.Sprintf("h%d.t%d.com", j, i))
	}
	return names
}

func (x *index) length(g group) int {
	return slices.Index(x.numbers[g.at:], 0)
}

func (x *index) eachGroup(f func(group)) {
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
	var set Set
	for i := range 100 {
		m := Match{Paths: []string{"/a/**", "/b/**", "/c/**", "/d/**"}, Hosts: hostNames(i, 50), Methods: []string{"A", "B", "C", "D", "E"}, Attributes: map[string][]string{"x": hostNames(i, 50)}}
		set.Rules = append(set.Rules, Rule{ID: fmt.Sprint(i), Match: m, Key: []Source{{Kind: Global}}, Quota: Quota{Unlimited: true}})
	}
	table, err := Compile(&set, Options{})
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	table.index.eachGroup(func(g group) {
		entries += table.index.length(g)
	})
	if most := maxEntries * len(set.Rules); entries > most {
		t.Errorf("%d entries of %d rules, want at most %d", entries, len(set.Rules), most)
	}
}
