package rule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
)

// MCP makes a rule count the messages of the Model Context Protocol (MCP) in the body of a request. Their
// attributes are mcp.method, such as tools/call, and of a call of a tool mcp.tool, its name.
type MCP struct{}

// The attributes of a message of MCP.
const (
	attributeMethod = prefixMCP + "method"
	attributeTool   = prefixMCP + "tool"
	prefixMCP       = "mcp."
)

func (p *parser) mcp(e *document.Element, _ string, r *Rule) {
	if e.Kind != document.Mapping || len(e.Members) > 0 {
		p.errorf("E006", e.Position, "mcp", "this is %s; write mcp: {}, because it has no fields", e.Describe())
		return
	}
	r.MCP = new(MCP)
}

func mcpElement(r *Rule) *document.Element {
	if r.MCP == nil {
		return nil
	}
	return &document.Element{Kind: document.Mapping}
}

// validateMCP returns what a rule asks of messages and cannot have. A name that it counts by must be one that it
// lists, because clients can call tools that do not exist.
func (r *Rule) validateMCP() error {
	counted := slices.DeleteFunc(slices.Clone(r.Key), func(s Source) bool {
		return s.Kind != Attribute || !strings.HasPrefix(s.Name, prefixMCP)
	})
	for _, s := range counted {
		if r.MCP != nil && len(r.Match.Attributes[s.Name]) == 0 {
			return fmt.Errorf("clients can invent values of %s, and so keys; list those that should count separately in match, as in attributes: {%[1]s: [search, \"*\"]}", s.Name)
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(r.Match.Attributes)), namesOf(counted)) {
		switch {
		case !strings.HasPrefix(name, prefixMCP):
		case r.MCP == nil:
			return fmt.Errorf("%s is in the body of a request, which is read only for a rule with mcp; add mcp: {}", document.Quote(name))
		case name != attributeMethod && name != attributeTool:
			return fmt.Errorf("%s is unknown; write %s or %s", document.Quote(name), attributeMethod, attributeTool)
		}
	}
	switch {
	case r.MCP == nil:
	case r.Tokens != nil:
		return errors.New("a rule counts messages of MCP or tokens of language models; make two rules of it")
	case len(r.Match.Methods) > 0 && !slices.Contains(r.Match.Methods, "POST") && !slices.Contains(r.Match.Methods, match.Any):
		return errors.New("messages of MCP come with POST, which method leaves out; add it")
	}
	return nil
}

func namesOf(sources []Source) []string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name
	}
	return names
}

// invented reports whether clients invent the key: it is a session of MCP, and nothing else that tells clients apart.
func (r *Rule) invented() bool {
	session := false
	for _, s := range r.Key {
		switch {
		case s.Kind == Header && s.Name == "Mcp-Session-Id":
			session = true
		case s.Kind.isNamed(), s.Kind == Attribute && strings.HasPrefix(s.Name, prefixMCP):
		default:
			return false
		}
	}
	return session
}

// ReadsMCP returns a rule that counts the messages of a request, going by its method, host and path, or nil. It is
// to messages what CountsTokens is to tokens.
func (t *Table) ReadsMCP(buf []Hit, req *Request) *Entry { return t.mcp.first(buf, req) }

// matchBatch is Match for a request with several messages. Rules that count messages are those that any of
// the messages meets; others do not know of them.
func (t *Table) matchBatch(hits []Hit, req *Request) []Hit {
	one := *req
	one.Batch = nil
	var found []Hit
	for i := -1; i < len(req.Batch); i++ {
		if i >= 0 {
			one.Attributes = req.Batch[i]
		}
		for _, hit := range t.Match(nil, &one) {
			if (hit.MCP != nil) == (i >= 0) {
				found = append(found, hit)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Hit) int { return cmp.Compare(a.order, b.order) })
	return append(hits, slices.CompactFunc(found, func(a, b Hit) bool { return a.Entry == b.Entry })...)
}

// batchIdentities is Identities for a request with several messages: those of each that meets the conditions of the
// rule, also if they are the same.
func (c Hit) batchIdentities(dst []byte, ends []int, req *Request) ([]byte, []int, error) {
	one := *req
	one.Batch = nil
	for _, one.Attributes = range req.Batch {
		if !c.match.MeetsAttributes(one.Attributes) {
			continue
		}
		applies, err := c.applies(&one)
		if err == nil && applies {
			dst, ends, err = c.Identities(dst, ends, &one)
		}
		if err != nil {
			return dst, ends, err
		}
	}
	return dst, ends, nil
}
