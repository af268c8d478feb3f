package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/document"
)

// Client is an entry of a [Directory].
type Client struct {
	Name   string // as rules count it: "user:ann", "api_key:sha256:…", "org:acme"
	Parent string // "" if there is none
	Tier   string

	// Zone and Starts are of its limits that follow the calendar; see [Quota].
	Zone, Starts string

	Limits  []OwnLimit
	Blocked bool
	Note    string // for people

	Stamp Stamp

	part, above part // that name it, and its parent
}

// Stamp is for who keeps a directory: a number that changes when the client does, and who changed it when. Files have none.
type Stamp struct {
	Serial uint64
	By     string
	At     time.Time // to the millisecond
}

// OwnLimit is what a client has under a rule instead of the rule's limits.
type OwnLimit struct {
	Rule  string // its id
	Quota Quota
}

// ReadClient reads a client as a line of a file of clients has it; see [ReadDirectory]. The errors name the file.
func ReadClient(file string, source []byte) (Client, Problems) {
	p := newClientParser(file)
	if len(source) > maxClientLine {
		p.errorf("", document.Position{}, "", "the client is longer than %d bytes; write less", maxClientLine)
		return Client{}, p.done()
	}
	e := document.Read("client.json", string(source), p.fault)
	if e == nil {
		return Client{}, withoutCodes(p.done())
	}
	c, _ := p.client(e)
	if problems := withoutCodes(p.done()); len(problems) > 0 {
		return Client{}, problems
	}
	return c, nil
}

func newClientParser(file string) *parser {
	return &parser{report: &report{file: file, quoter: document.NewQuoter(""), seen: map[seen]bool{}, faults: map[document.Position]bool{}}}
}

// withoutCodes removes the codes, which are of rules, and the excerpts, of a text that was not kept.
func withoutCodes(problems Problems) Problems {
	for i := range problems {
		problems[i].Code, problems[i].Excerpt = "", ""
	}
	return problems
}

// ClientToJSON returns a client as JSON in one line, which [ReadClient] accepts.
func ClientToJSON(c *Client) []byte { return clientElement(c).JSON() }

// MarshalJSON returns the result of ClientToJSON.
func (c Client) MarshalJSON() ([]byte, error) { return ClientToJSON(&c), nil }

// clientFields are the fields of a client, in the order in which they are written.
var clientFields = []string{"client", "parent", "tier", "zone", "starts", "limits", "blocked", "note"}

func clientElement(c *Client) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for i, value := range []string{c.Name, c.Parent, c.Tier, c.Zone} {
		e.Add(clientFields[i], unless("", value, document.NewText))
	}
	e.Add("starts", unless("", c.Starts, startElement))
	quotas := make(map[string]Quota, len(c.Limits))
	for _, l := range c.Limits {
		quotas[l.Rule] = l.Quota
	}
	e.Add("limits", quotasElement(quotas, quotaFields))
	e.Add("blocked", unless(false, c.Blocked, document.NewTruth))
	e.Add("note", unless("", c.Note, document.NewText))
	return e
}

// client reads a client, and where its name stands. Without a name it is none.
func (p *parser) client(e *document.Element) (c Client, at document.Position) {
	at = e.Position
	f := p.fields(e, "a client", clientFields)
	if f == nil {
		return c, at
	}
	if name := f["client"]; name == nil {
		p.errorf("", e.Position, "client", "required; write whom the entry is about, such as \"user:ann\"")
	} else {
		at = name.Position
	}
	c.Name, c.part = p.clientName(f["client"], "client")
	c.Parent, c.above = p.clientName(f["parent"], "parent")
	var q Quota
	if e := f["zone"]; e != nil {
		p.zone(e, "zone", &q)
	}
	if e := f["starts"]; e != nil {
		p.starts(e, "starts", &q)
	}
	c.Zone, c.Starts, c.Blocked = q.Zone, q.Starts, p.truth(f["blocked"], "blocked")
	if e := f["tier"]; e != nil {
		c.Tier, _ = p.text(e, "tier", maxName)
	}
	if e := f["note"]; e != nil {
		c.Note, _ = p.text(e, "note", maxText)
	}
	c.Limits = p.ownLimits(f["limits"])
	return c, at
}

// clientName reads the name of a client. It quotes no API key.
func (p *parser) clientName(e *document.Element, field string) (string, part) {
	if e == nil {
		return "", part{}
	}
	text, ok := p.text(e, field, 4*maxValue)
	if !ok {
		return "", part{}
	}
	name, of, err := clientName(text)
	if err != nil {
		p.errorf("", e.Position, field, "%v", err)
		return "", part{}
	}
	return name, of
}

// ownLimits reads the limits of a client by rules.
func (p *parser) ownLimits(e *document.Element) (own []OwnLimit) {
	if e == nil {
		return nil
	}
	if e.Kind != document.Mapping || len(e.Members) == 0 {
		p.errorf("", e.Position, "limits", "this is %s; write rules and limits, as in {api: 100/1m}", e.Describe())
		return nil
	}
	if len(e.Members) > maxOwnLimits {
		p.errorf("", e.Position, "limits", "there are limits for %d rules; the maximum is %d", len(e.Members), maxOwnLimits)
		return nil
	}
	for _, m := range e.Members {
		id, _ := p.text(m.Name, "limits", MaxIDLen)
		whose := "limits: " + id + ": "
		f := fields{"limit": m.Value}
		switch m.Value.Kind {
		case document.List:
			f = fields{"limits": m.Value}
		case document.Mapping:
			f = p.fields(m.Value, strings.TrimSuffix(whose, ": "), []string{"limit", "limits", "burst", "concurrency"})
		}
		q, _ := p.quota(whose, m.Name.Position, f)
		own = append(own, OwnLimit{id, q.Quota})
	}
	slices.SortFunc(own, func(a, b OwnLimit) int { return strings.Compare(a.Rule, b.Rule) })
	return own
}

// maxOwnLimits is for how many rules a client can have limits of its own.
const maxOwnLimits = 64

// ClientName returns the name of a client as rules count it, of one that people write. An API key becomes its hash.
func ClientName(text string) (string, error) {
	if len(text) > 4*maxValue {
		return "", errClientName
	}
	name, _, err := clientName(text)
	return name, err
}

// clientName returns the name of a client as rules count it, and the part of a key that counts it.
func clientName(text string) (string, part, error) {
	word, _, found := strings.Cut(text, ":")
	s := Source{Kind: SourceKind(max(0, slices.Index(sources.names, word)))}
	switch {
	case !found:
		return "", part{}, errClientName
	case s.Kind == User || s.Kind == APIKey:
	case s.Kind == Attribute:
		if s.Name, _, found = strings.Cut(text[len(word)+1:], ":"); !found {
			return "", part{}, errors.New(`an attribute has a name and a value; write for example "attr:customer:42"`)
		}
	case isLevelName(word):
		s = Source{Kind: Level, Name: word}
	default:
		return "", part{}, errClientName
	}
	p, err := newPart(s, 64)
	if err != nil {
		return "", part{}, err
	}
	name, err := p.appendText(nil, text)
	switch {
	case err != nil:
		return "", part{}, errClientName
	case !p.secret && strings.HasPrefix(string(name[len(p.prefix):]), `\`+marker):
		return "", part{}, fmt.Errorf("the name is longer than %d bytes, or a hash; write the client itself, and give a long one a shorter name", maxValue)
	}
	return string(name), p, nil
}

var errClientName = errors.New(`write a client as "api_key:sha256:…", "user:ann", "attr:customer:42", or with the name of a level, as in "org:acme"`)
