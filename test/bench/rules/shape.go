package rules

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/weirhq/weir/rule"
)

// shape is a kind of rule set.
type shape struct {
	name string
	what string // a rule of it

	// rule is the i-th; texts with a blank are filled with its number.
	rule func(i int) rule.Match

	// ask returns a request that meets it, and the number to fill in.
	ask func(i int) (*letter, int)
}

const (
	anyHost = "api.example.com"
	anyPath = "/api/v1/items/7"
	tenant  = "t" + blank + ".example.com"
)

// allShapes are all that are measured.
func allShapes() []shape {
	shapes := []shape{
		simple("exact paths", "/api/v1/resource-00042/items",
			rule.Match{Paths: []string{"/api/v1/resource-" + blank + "/items"}},
			newLetter("GET", anyHost, "/api/v1/resource-"+blank+"/items", "")),
		methods(),
		simple("prefixes", "/tenants/00042/**",
			rule.Match{Paths: []string{"/tenants/" + blank + "/**"}},
			newLetter("GET", anyHost, "/tenants/"+blank+"/users/7", "")),
		simple("parameters", "/shops/00042/orders/{order}",
			rule.Match{Paths: []string{"/shops/" + blank + "/orders/{order}"}},
			newLetter("GET", anyHost, "/shops/"+blank+"/orders/7", "")),
		simple("hosts", "t00042.example.com, and /api/** for all of them",
			rule.Match{Hosts: []string{tenant}, Paths: []string{"/api/**"}},
			newLetter("GET", tenant, anyPath, "")),
		simple("names below", "*.t00042.example.com",
			rule.Match{Hosts: []string{"*." + tenant}},
			newLetter("GET", "www."+tenant, anyPath, "")),
		simple("attributes", "resource: r-00042, and no path",
			rule.Match{Attributes: map[string][]string{"resource": {"r-" + blank}}},
			newLetter("GET", anyHost, anyPath, "r-"+blank)),
	}
	return append(shapes, mixed(shapes))
}

// simple is a shape whose rules differ in a number only.
func simple(name, what string, m rule.Match, l *letter) shape {
	return shape{
		name, what,
		func(i int) rule.Match { return fill(m, i) },
		func(i int) (*letter, int) { return l, i },
	}
}

// methods is a shape in which two rules each have the same path.
func methods() shape {
	const path = "/api/v1/shared-" + blank
	names := [2]string{"GET", "POST"}
	letters := [2]*letter{newLetter(names[0], anyHost, path, ""), newLetter(names[1], anyHost, path, "")}
	return shape{
		"methods", "two rules for each path: GET and POST",
		func(i int) rule.Match {
			return fill(rule.Match{Paths: []string{path}, Methods: []string{names[i%2]}}, i/2)
		},
		func(i int) (*letter, int) { return letters[i%2], i / 2 },
	}
}

// mixed is all shapes by turns.
func mixed(shapes []shape) shape {
	return shape{
		"mixed", "all of these in turn",
		func(i int) rule.Match { return shapes[i%len(shapes)].rule(i) },
		func(i int) (*letter, int) { return shapes[i%len(shapes)].ask(i) },
	}
}

// fill writes a number into all blanks of a match.
func fill(m rule.Match, number int) rule.Match {
	filled := func(texts []string) []string {
		out := make([]string, len(texts))
		for i, s := range texts {
			out[i] = strings.ReplaceAll(s, blank, fmt.Sprintf("%05d", number))
		}
		return out
	}
	out := rule.Match{Methods: m.Methods, Hosts: filled(m.Hosts), Paths: filled(m.Paths), Attributes: map[string][]string{}}
	for name, values := range m.Attributes {
		out.Attributes[name] = filled(values)
	}
	return out
}

// common is how many rules every request meets besides its own.
const common = 2

// compile makes a set of n rules, the last of which are everybody's.
func (s shape) compile(n int) (*rule.Table, time.Duration, error) {
	set := new(rule.Set)
	for i := range n - common {
		set.Rules = append(set.Rules, limited(i, s.rule(i)))
	}
	set.Rules = append(set.Rules,
		limited(n-2, rule.Match{Paths: []string{"/**"}, Methods: []string{"GET", "POST", "PUT"}}),
		limited(n-1, rule.Match{}))
	begin := time.Now()
	table, err := rule.Compile(set, rule.Options{})
	return table, time.Since(begin), err
}

func limited(i int, m rule.Match) rule.Rule {
	return rule.Rule{
		ID: fmt.Sprintf("rule-%05d", i), Match: m, Key: []rule.Source{{Kind: rule.IP}},
		Quota: rule.Quota{Rates: []rule.Rate{{N: 100, Period: time.Minute}}},
	}
}

// A request is written into the same few bytes as the one before, as a server reads
// requests into its buffer. Ten thousand of them side by side would compete with the
// rules for the cache, and be measured instead of them.
type letter struct {
	method, host, path, resource text
}

// text has room for a number, which makes it another one.
type text struct {
	bytes  []byte
	number []byte // the part of bytes where it goes; nil for none
}

// blank is where the number goes.
const blank = "#####"

func newLetter(method, host, path, resource string) *letter {
	return &letter{newText(method), newText(host), newText(path), newText(resource)}
}

func newText(s string) text {
	t := text{bytes: []byte(s)}
	if i := bytes.Index(t.bytes, []byte(blank)); i >= 0 {
		t.number = t.bytes[i : i+len(blank)]
	}
	return t
}

// with is the text of a number. It holds until the next one is written.
func (t *text) with(number int) string {
	for i := len(t.number) - 1; i >= 0; i-- {
		t.number[i] = byte('0' + number%10)
		number /= 10
	}
	return unsafe.String(unsafe.SliceData(t.bytes), len(t.bytes))
}

// arrive makes a request of the letter.
func (l *letter) arrive(req *rule.Request, number int) {
	req.Method, req.Host, req.Path = l.method.with(number), l.host.with(number), l.path.with(number)
	if resource := l.resource.with(number); resource != "" {
		req.Attributes["resource"] = resource
	} else if len(req.Attributes) > 0 {
		clear(req.Attributes)
	}
}
