package rule

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// Format returns a set as canonical YAML: fields in the order of the reference, maps
// sorted by name, one value instead of a list of one, and no defaults. Parse returns
// the same set. API keys are written as they are in the set. In a program that does not
// import package rule/rulefile, it is JSON, which is YAML, too.
func Format(set *Set) []byte {
	text, err := setElement(set).YAML()
	if err != nil {
		return append(ToJSON(set), '\n')
	}
	return text
}

// ToJSON returns a set as JSON, with the same fields as Format.
func ToJSON(set *Set) []byte { return setElement(set).JSON() }

// RuleToJSON returns one rule as JSON, which ParseRule accepts.
func RuleToJSON(r *Rule) []byte { return ruleElement(r).JSON() }

// MarshalJSON returns the result of ToJSON.
func (s Set) MarshalJSON() ([]byte, error) { return ToJSON(&s), nil }

// UnmarshalJSON parses a set as Parse does, and ignores warnings.
func (s *Set) UnmarshalJSON(source []byte) error {
	set, problems := Parse("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	*s = *set
	return nil
}

// MarshalJSON returns the result of RuleToJSON.
func (r Rule) MarshalJSON() ([]byte, error) { return RuleToJSON(&r), nil }

// UnmarshalJSON parses a rule as ParseRule does, and ignores warnings.
func (r *Rule) UnmarshalJSON(source []byte) error {
	parsed, problems := ParseRule("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	*r = *parsed
	return nil
}

func setElement(set *Set) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	if len(set.Levels) > 0 {
		e.Add("levels", document.NewList(set.Levels))
	}
	if len(set.Rules) > 0 {
		rules := &document.Element{Kind: document.List}
		for i := range set.Rules {
			rules.Items = append(rules.Items, ruleElement(&set.Rules[i]))
		}
		e.Add("rules", rules)
	}
	e.Add("exempt", listElement(set.Exempt))
	e.Add("block", listElement(set.Block))
	return e
}

func ruleElement(r *Rule) *document.Element { return ruleFields.element(r) }

func listElement(l List) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	ips := make([]string, len(l.IPs))
	for i, network := range l.IPs {
		ips[i] = networkText(network)
	}
	for i, values := range [][]string{ips, l.Users, l.APIKeys} {
		if len(values) > 0 {
			e.Add(listFields[i], document.NewList(values))
		}
	}
	return e.OrNil()
}

// networkText writes a network of one address as the address.
func networkText(n netip.Prefix) string {
	if n.IsSingleIP() {
		return n.Addr().String()
	}
	return n.String()
}

// MaxSummary is the maximum length of a summary in bytes.
const MaxSummary = 1000

// Summarize describes the changes between two sets in one line of at most MaxSummary
// bytes, as in "exempt changed; login: limit 5/1m → 10/1m; added search". A nil set is
// empty. The line contains no values that may be secret: no clients and no API keys.
func Summarize(old, now *Set) string {
	old, now = cmp.Or(old, &Set{}), cmp.Or(now, &Set{})
	s := &summary{}
	// First, because what does not fit is left out, and a list that is emptied must not be.
	if !sameList(old.Exempt, now.Exempt) {
		s.parts = append(s.parts, "exempt changed")
	}
	if !sameList(old.Block, now.Block) {
		s.parts = append(s.parts, "block changed")
	}
	if !slices.Equal(old.Levels, now.Levels) {
		s.parts = append(s.parts, "levels changed")
	}
	before, after := byID(old), byID(now)
	for i := range now.Rules {
		if was := before[now.Rules[i].ID]; was != nil {
			s.compare(was, &now.Rules[i])
		}
	}
	s.list("added", ids(now, before, false))
	s.list("removed", ids(old, after, false))
	if !slices.Equal(ids(old, after, true), ids(now, before, true)) {
		s.parts = append(s.parts, "order changed")
	}
	return s.text()
}

func byID(set *Set) map[string]*Rule {
	m := make(map[string]*Rule, len(set.Rules))
	for i := range set.Rules {
		m[set.Rules[i].ID] = &set.Rules[i]
	}
	return m
}

// ids are those of the rules that are among others, or of those that are not, in the order of
// the set.
func ids(set *Set, others map[string]*Rule, among bool) (some []string) {
	for i := range set.Rules {
		if id := set.Rules[i].ID; (others[id] != nil) == among {
			some = append(some, id)
		}
	}
	return some
}

func sameList(a, b List) bool {
	return slices.Equal(a.IPs, b.IPs) && slices.Equal(a.Users, b.Users) && slices.Equal(a.APIKeys, b.APIKeys)
}

type summary struct{ parts []string }

// list names a few, and counts the others.
func (s *summary) list(what string, ids []string) {
	if len(ids) > 0 {
		s.parts = append(s.parts, what+" "+fewOf(ids, 5))
	}
}

// compare tells what a rule has that it did not have before.
func (s *summary) compare(old, now *Rule) {
	before, after := ruleElement(old), ruleElement(now)
	var changes []string
	for _, name := range ruleFields.names {
		was, is := before.Get(name), after.Get(name)
		if name == "limit" { // limits means the same
			was, is = cmp.Or(was, before.Get("limits")), cmp.Or(is, after.Get("limits"))
		}
		switch {
		case name == "id" || name == "limits":
		case was == nil && is == nil || was != nil && is != nil && bytes.Equal(was.JSON(), is.JSON()):
		case isShown(name, was) && isShown(name, is):
			changes = append(changes, name+" "+fieldText(name, was)+" → "+fieldText(name, is))
		default:
			changes = append(changes, name+" changed")
		}
	}
	if len(changes) > 0 {
		s.parts = append(s.parts, now.ID+": "+strings.Join(changes, ", "))
	}
}

// withoutField is what a field is when it is not there, if that is not none.
var withoutField = map[string]string{
	"algorithm": weir.TokenBucket.String(), "mode": Enforce.String(), "on_expiry": Keep.String(), "hold_ttl": notation.FormatDuration(weir.DefaultHoldTTL),
	"cost": "1", "count_denied": "false", "shape": "false",
	"burst": "of the limit", "starts": "by default", "buckets": "by default", "on_failure": "by default",
}

// fieldText is a field in one line.
func fieldText(name string, e *document.Element) string {
	if e == nil {
		return cmp.Or(withoutField[name], "none")
	}
	return e.Brief()
}

// isShown reports whether a summary has the value of a field: it is short, and not secret, as clients can be.
func isShown(name string, e *document.Element) bool {
	return name != "description" && (e == nil || e.IsScalar() || e.Kind == document.List)
}

// text is as many parts as there is room for, and how many are left.
func (s *summary) text() string {
	if len(s.parts) == 0 {
		return "nothing changed"
	}
	if text := strings.Join(s.parts, "; "); len(text) <= MaxSummary {
		return text
	}
	const room = MaxSummary - len("; more changes: 100000")
	text, shown := document.Clip(s.parts[0], room), 1
	for _, part := range s.parts[1:] {
		if len(text)+len("; ")+len(part) > room {
			break
		}
		text += "; " + part
		shown++
	}
	if left := len(s.parts) - shown; left > 0 {
		text += fmt.Sprintf("; more changes: %d", left)
	}
	return text
}
