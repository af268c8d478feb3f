package match

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Any stands for every method, host or path, also for those that a rule does not name.
const Any = "*"

// methodsOfHTTP are told apart by a rule that names no methods. Clients can invent others.
var methodsOfHTTP = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

// names are the methods and hosts that a rule names, besides [Any].
type names struct {
	methods            []string // in capitals
	hosts              *hosts
	anyMethod, anyHost bool

	known []string // methods, or those of HTTP
	short []string // the exact hosts, if they are few and none has a colon, which would be a port
}

func newNames(m Conditions) (n names) {
	for _, name := range m.Methods {
		if name == Any {
			n.anyMethod = true
		} else {
			n.methods = append(n.methods, strings.ToUpper(name))
		}
	}
	n.anyHost = slices.Contains(m.Hosts, Any)
	n.hosts = newHosts(slices.DeleteFunc(slices.Clone(m.Hosts), func(name string) bool { return name == Any }))
	if n.known = n.methods; len(n.known) == 0 {
		n.known = methodsOfHTTP
	}
	if h := n.hosts; h != nil && len(h.exact) <= few && !strings.Contains(strings.Join(h.exact, ""), ":") {
		n.short = h.exact
	}
	return n
}

// Method returns which of Methods a method is, and their number without [Any] for one that the
// rule does not name. If it names none, those of HTTP are told apart.
func (r *Rule) Method(method string) int {
	if i := slices.Index(r.names.known, method); i >= 0 {
		return i // as it is nearly always written
	}
	return r.otherMethod(method)
}

func (r *Rule) otherMethod(method string) int {
	if i := slices.Index(r.names.known, strings.ToUpper(method)); i >= 0 {
		return i
	}
	return len(r.names.known)
}

// Methods returns what a method may be that meets the conditions, [Any] last.
func (r *Rule) Methods() []string {
	return withAny(r.names.known, r.names.anyMethod || len(r.names.methods) == 0)
}

// Host returns which of Hosts is the most specific that a host matches, as in
// "*.example.com", and their number without [Any] if it matches none.
func (r *Rule) Host(host string) int {
	if i := slices.Index(r.names.short, host); i >= 0 {
		return i // as it is nearly always written
	}
	return r.otherHost(host)
}

func (r *Rule) otherHost(host string) int {
	h := r.names.hosts
	if h == nil {
		return 0
	}
	if i := h.findHost(CanonicalHost(host)); i >= 0 {
		return i
	}
	return h.count()
}

// Hosts returns what a host may be that meets the conditions, [Any] last.
func (r *Rule) Hosts() []string {
	h := r.names.hosts
	if h == nil {
		return []string{Any}
	}
	return withAny(slices.Concat(h.exact, h.stars), r.names.anyHost)
}

func withAny(names []string, any bool) []string {
	if any {
		return append(slices.Clip(names), Any)
	}
	return names
}

// Only is the place behind a value that is the only one.
const Only = -1

// Route returns which of Routes is the most specific that a path matches, and the number of
// patterns if it matches none. Servers read an unusual path in several ways, each of which may match another
// pattern: Route returns that of the first reading from a place on, and the place behind it,
// which is [Only] if there is no other reading, and 0 if there was none.
func (r *Rule) Route(path string, from int) (route, next int) {
	if from == Only {
		return 0, 0
	}
	if len(r.paths) < 2 {
		return 0, Only
	}
	w := readPath(path, r.ignoreCase)
	if w.odd == 0 {
		if route = r.specific(w.path); route < 0 {
			route = len(r.paths)
		}
		return route, Only
	}
	readings := w.readings()
	for i := from; i < len(readings); i++ {
		known := func(before string) bool { return r.specific(before) == route }
		if route = r.specific(readings[i]); route >= 0 && !slices.ContainsFunc(readings[:i], known) {
			return route, i + 1 // each route once: readings are many, and made again for each call
		}
	}
	if from == 0 {
		return len(r.paths), Only
	}
	return 0, 0
}

// Routes returns what a route may be that meets the conditions: the patterns, the most specific
// first, or [Any] if there are none.
func (r *Rule) Routes() []string {
	if len(r.paths) == 0 {
		return []string{Any}
	}
	texts := make([]string, len(r.paths))
	for i := range r.paths {
		texts[i] = r.paths[i].text
	}
	return texts
}

// Pattern returns one of the patterns, by its place in Routes.
func (r *Rule) Pattern(route int) string { return r.paths[route].text }

// compare puts the more specific of two patterns first, which is decided by the first segment
// in which they differ: a name, then {id}, then the end, then /**. Those with the same
// beginning are side by side.
func (p *pattern) compare(q *pattern) int {
	for i := 0; ; i++ {
		rank, name := q.at(i)
		if c := p.compareAt(i, rank, name); c != 0 || rank >= rankEnd {
			return c
		}
	}
}

const (
	rankName = iota
	rankParameter
	rankEnd
	rankRest
)

// at is what a pattern has as a segment, and its name.
func (p *pattern) at(i int) (rank int, name string) {
	switch {
	case i < len(p.segments) && p.segments[i] != "":
		return rankName, p.segments[i]
	case i < len(p.segments):
		return rankParameter, ""
	case p.rest:
		return rankRest, ""
	}
	return rankEnd, ""
}

func (p *pattern) compareAt(i, rank int, name string) int {
	own, ownName := p.at(i)
	if own != rank {
		return own - rank
	}
	return strings.Compare(ownName, name)
}

// specific returns which pattern is the most specific that one reading of a path matches; -1 if
// none.
func (r *Rule) specific(reading string) int {
	if p := mostSpecific(r.paths, 0, reading); p != nil {
		return int(p.place)
	}
	return -1
}

// fewPatterns are tried one by one.
const fewPatterns = 8

// mostSpecific follows a path from a segment on, among patterns in order that have the same
// beginning. It halves their number again and again, so a list may be long.
func mostSpecific(list []pattern, i int, path string) *pattern {
	if len(list) <= fewPatterns {
		for k := range list {
			if list[k].matches(i, path) {
				return &list[k]
			}
		}
		return nil
	}
	segment, left := cutSegment(path)
	if segment == "" {
		if p := first(list, i, rankEnd); p != nil {
			return p
		}
		return first(list, i, rankRest)
	}
	if p := mostSpecificBelow(list, i, rankName, segment, left); p != nil {
		return p
	}
	if p := mostSpecificBelow(list, i, rankParameter, "", left); p != nil {
		return p
	}
	return first(list, i, rankRest)
}

func mostSpecificBelow(list []pattern, i, rank int, name, left string) *pattern {
	if list = having(list, i, rank, name); len(list) == 0 {
		return nil
	}
	return mostSpecific(list, i+1, left)
}

// first is of the patterns that end at a segment.
func first(list []pattern, i, rank int) *pattern {
	if list = having(list, i, rank, ""); len(list) == 0 {
		return nil
	}
	return &list[0]
}

// having are the patterns that have a segment, among those in order: often all or none.
func having(list []pattern, i, rank int, name string) []pattern {
	low, high := list[0].compareAt(i, rank, name), list[len(list)-1].compareAt(i, rank, name)
	switch {
	case low == 0 && high == 0:
		return list
	case low > 0 || high < 0:
		return nil
	}
	begin := halve(list, i, rank, name, 0)
	return list[begin : begin+halve(list[begin:], i, rank, name, 1)]
}

// halve is how many patterns are before a segment, which compare as less than a bound.
func halve(list []pattern, i, rank int, name string, bound int) int {
	return sort.Search(len(list), func(k int) bool { return list[k].compareAt(i, rank, name) >= bound })
}

// MaxSegments bounds how deep a pattern goes, and so how far a request is followed.
const MaxSegments = 64

// pattern is a path as a rule has it: segments, and then perhaps anything.
type pattern struct {
	text     string
	segments []string // spelt; "" for any one, {id}
	rest     bool     // ends in /**, which is also nothing at all
	place    int32    // among those of the rule, the most specific first
}

// CheckPath reports a path that no rule can have.
func CheckPath(text string) error {
	_, err := newPattern(text, false)
	return err
}

// newPattern reads "/users/{id}" or "/api/**".
func newPattern(text string, ignoreCase bool) (pattern, error) {
	p := pattern{text: text}
	if !strings.HasPrefix(text, "/") {
		return p, fmt.Errorf("path %q does not begin with a slash; add one", text)
	}
	if strings.Contains(text, "?") {
		return p, fmt.Errorf("path %q has a query; remove it", text)
	}
	for segment := range strings.SplitSeq(text[1:], "/") {
		if p.rest {
			return p, fmt.Errorf("path %q continues after **; write ** only at the end", text)
		}
		switch {
		case segment == "":
		case segment == "**":
			p.rest = true
		case isParameter(segment):
			p.segments = append(p.segments, "")
		case strings.ContainsAny(segment, "{}*"):
			return p, fmt.Errorf("path %q: %q is not a name or {name}; write {id} for one whole segment, or ** at the end for everything below", text, segment)
		default:
			name := spellPath("/"+segment, ignoreCase)[1:]
			if name == "." || name == ".." {
				return p, fmt.Errorf("path %q: %q is resolved before a path is matched; remove it", text, segment)
			}
			p.segments = append(p.segments, name)
		}
	}
	if len(p.segments) > MaxSegments {
		return p, fmt.Errorf("path %q has %d segments, and at most %d are compared; end it with ** before that", text, len(p.segments), MaxSegments)
	}
	return p, nil
}

func isParameter(segment string) bool {
	return len(segment) > 2 && segment[0] == '{' && segment[len(segment)-1] == '}' && !strings.ContainsAny(segment[1:len(segment)-1], "{}")
}

// literal is the one path that matches, if there is only one.
func (p *pattern) literal() (string, bool) {
	if p.rest || slices.Contains(p.segments, "") {
		return "", false
	}
	return joinPath(p.segments), true
}

// matches holds the pattern, from a segment on, against the rest of one reading of a
// path. The index does the same for many patterns at once.
func (p *pattern) matches(i int, path string) bool {
	left, ok := follow(p.segments[i:], path)
	return ok && (p.rest || left == "" || left == "/")
}

// follow returns what is left of a canonical path behind some segments, if it has them.
func follow(segments []string, path string) (left string, ok bool) {
	for _, want := range segments {
		end := len(want) + 1
		switch {
		case want == "":
			var segment string
			if segment, path = cutSegment(path); segment == "" {
				return "", false
			}
		case len(path) < end || path[1:end] != want || len(path) > end && path[end] != '/':
			return "", false
		default:
			path = path[end:]
		}
	}
	return path, true
}

// cutSegment cuts the first segment off a canonical path; it is "" at the end.
func cutSegment(path string) (segment, rest string) {
	if len(path) < 2 {
		return "", ""
	}
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		return path[1 : i+1], path[i+1:]
	}
	return path[1:], ""
}
