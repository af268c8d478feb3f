package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// clientRoutes are of the directory of clients. What follows the slash is a name with a colon, so it is none of the words.
var clientRoutes = []route{
	{"GET", "/v1/clients", browsing, registered((*Handler).listClients)},
	{"GET", "/v1/clients/tiers", browsing, registered(withoutQuery((*Handler).countTiers))},
	{"GET", "/v1/clients/export", browsing, registered(withoutQuery((*Handler).exportClients))},
	{"POST", "/v1/clients/import", registering, registered((*Handler).importClients)},
	{"GET", clientPath, browsing, registered(withoutQuery((*Handler).getClient))},
	{"PUT", clientPath, registering, registered(withoutQuery((*Handler).putClient))},
	{"PATCH", clientPath, registering, registered(withoutQuery((*Handler).patchClient))},
	{"DELETE", clientPath, registering, registered(withoutQuery((*Handler).deleteClient))},
}

// clientPath is of one client. Unlike other paths, all of what follows is the name, slashes included.
const clientPath = "/v1/clients/{client}"

// maxClientBody is the longest body with one client, in bytes.
const maxClientBody = 64 << 10

var withClients = having(func(o *Options) bool { return o.Clients != nil }, "clients-off", "This server has no directory of clients.")

// registered makes a handler of one that needs the directory. Until that was read once, nothing is known of any client.
func registered(serve handler) handler {
	return withClients(func(h *Handler, c *call) (any, error) {
		if s := h.options.Clients.Status(); !s.Loaded {
			return nil, h.trouble(c).Clients(s.Err)
		}
		return serve(h, c)
	})
}

// EntryAnswer is a client of the directory.
type EntryAnswer struct {
	Client  string                     `json:"client"`
	Parent  string                     `json:"parent,omitempty"`
	Tier    string                     `json:"tier,omitempty"`
	Zone    string                     `json:"zone,omitempty"`
	Starts  Start                      `json:"starts,omitempty"`
	Limits  map[string]json.RawMessage `json:"limits,omitempty"` // by rule, as a file of clients has them
	Blocked bool                       `json:"blocked,omitempty"`
	Note    string                     `json:"note,omitempty"`

	Version string    `json:"version,omitempty"` // as in the ETag
	By      string    `json:"by,omitempty"`      // who made the last change, and when
	At      time.Time `json:"at,omitzero"`

	Line     []EntryAnswer  `json:"line,omitempty"`     // those that it belongs to, from below; not in lists
	Warnings []EntryWarning `json:"warnings,omitempty"` // what of it has no effect under the rules in force; not in lists
}

// EntryWarning is something in a client that has no effect.
type EntryWarning struct {
	Message string `json:"message"`
}

func entryAnswer(e *clients.Entry) (a EntryAnswer) {
	if err := json.Unmarshal(rule.ClientToJSON(&e.Client), &a); err != nil {
		panic(err) // both have the same fields
	}
	a.Version, a.By, a.At = e.Version, e.By, e.At
	return a
}

// EntriesAnswer is a page of clients, in the order of their names.
type EntriesAnswer struct {
	Clients []EntryAnswer `json:"clients"`
	Next    string        `json:"next,omitempty"` // "after" of the next page; "" if this is the last
	Stale
}

// TiersAnswer is how many clients there are, and how many have each tier of their own.
type TiersAnswer struct {
	Clients int            `json:"clients"`
	Tiers   map[string]int `json:"tiers"`
	Stale
}

// Stale is since when an answer may not be current, because the store of the clients is unavailable.
type Stale struct {
	Since time.Time `json:"stale_since,omitzero"`
}

func (h *Handler) stale() Stale { return Stale{h.options.Clients.Status().Since} }

// listClients answers GET /v1/clients.
func (h *Handler) listClients(c *call) (any, error) {
	q := c.queryOfTexts("", "parent", "tier", "kind", "contains", "after", "limit")
	want := clients.Query{
		Tier: q.text("tier"), Kind: strings.TrimSuffix(q.text("kind"), ":"), Contains: q.text("contains"), After: q.text("after"),
		Limit: int(q.whole("limit", 100, 1, clients.MaxPage)),
	}
	if parent := q.text("parent"); parent != "" {
		var err error
		want.Parent, err = clientName("parent", parent)
		q.wrong(err)
	}
	if q.err != nil {
		return nil, q.err
	}
	page, next := h.options.Clients.List(want)
	answer := EntriesAnswer{Clients: make([]EntryAnswer, len(page)), Next: next, Stale: h.stale()}
	for i := range page {
		answer.Clients[i] = entryAnswer(&page[i])
	}
	return answer, nil
}

// countTiers answers GET /v1/clients/tiers.
func (h *Handler) countTiers(*call) (any, error) {
	return TiersAnswer{h.options.Clients.Count(), h.options.Clients.Tiers(), h.stale()}, nil
}

// getClient answers GET /v1/clients/{client}.
func (h *Handler) getClient(c *call) (any, error) {
	name, err := clientName("client", c.variable)
	if err != nil {
		return nil, err
	}
	line := h.options.Clients.Line(name)
	if len(line) == 0 {
		return nil, &clients.Error{Reason: clients.NotFound}
	}
	c.Header().Set("ETag", tagOf(line[0].Version))
	if tags, any, ok := entityTags(c.r.Header["If-None-Match"]); ok && (any || hasTag(tags, line[0].Version)) {
		c.WriteHeader(http.StatusNotModified)
		return nil, nil
	}
	answer := h.fullAnswer(&line[0])
	for i := range line[1:] {
		answer.Line = append(answer.Line, entryAnswer(&line[i+1]))
	}
	return answer, nil
}

// putClient answers PUT /v1/clients/{client}: the client is as the body says, whether or not it was there.
func (h *Handler) putClient(c *call) (any, error) {
	name, source, err := c.clientBody()
	if err != nil {
		return nil, err
	}
	entry, err := readClient(name, source)
	if err != nil {
		return nil, err
	}
	condition, err := h.clientCondition(c, name)
	if err != nil {
		return nil, err
	}
	return h.changeClient(c, clients.Change{Client: entry, If: condition})
}

// maxPatches is how often a patch is made again because somebody else has changed the client.
const maxPatches = 5

// patchClient answers PATCH /v1/clients/{client}, with a JSON merge patch (RFC 7396).
func (h *Handler) patchClient(c *call) (any, error) {
	name, source, err := c.clientBody()
	if err != nil {
		return nil, err
	}
	patch, err := readObject(source)
	if err != nil {
		return nil, err
	}
	condition, err := h.clientCondition(c, name)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		was, known := h.options.Clients.Get(name)
		if !known {
			return nil, &clients.Error{Reason: clients.NotFound}
		}
		if condition != "" && condition != clients.Exists && condition != was.Version {
			return nil, &clients.Error{Reason: clients.Mismatch}
		}
		entry, err := patched(&was.Client, patch)
		if err != nil {
			return nil, err
		}
		answer, err := h.changeClient(c, clients.Change{Client: entry, If: was.Version})
		if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Kind != fault.VersionConflict || try == maxPatches || condition != "" && condition != clients.Exists {
			return answer, err
		}
	}
}

// deleteClient answers DELETE /v1/clients/{client}.
func (h *Handler) deleteClient(c *call) (any, error) {
	name, err := clientName("client", c.variable)
	if err != nil {
		return nil, err
	}
	condition, err := h.clientCondition(c, name)
	if err != nil {
		return nil, err
	}
	if _, err := h.changeClient(c, clients.Change{Client: rule.Client{Name: name}, Delete: true, If: condition}); err != nil {
		return nil, err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// changeClient makes one change, and answers with the client as it is then.
func (h *Handler) changeClient(c *call, change clients.Change) (any, error) {
	outcomes, err := h.options.Clients.Apply(c.r.Context(), c.author(), []clients.Change{change})
	if err == nil {
		err = outcomes[0].Err
	}
	if err != nil {
		return nil, h.trouble(c).Client(err)
	}
	entry := &outcomes[0].Entry
	if outcomes[0].Created {
		c.success = http.StatusCreated
		c.Header().Set("Location", "/v1/clients/"+url.PathEscape(entry.Name))
	}
	if !change.Delete {
		c.Header().Set("ETag", tagOf(entry.Version))
	}
	return h.fullAnswer(entry), nil
}

// fullAnswer is a client with what of it has no effect.
func (h *Handler) fullAnswer(e *clients.Entry) EntryAnswer {
	answer := entryAnswer(e)
	if idle, ok := errors.AsType[*engine.IdleError](h.options.Engine.Idle(&e.Client)); ok {
		for _, what := range idle.What {
			answer.Warnings = append(answer.Warnings, EntryWarning{what})
		}
	}
	return answer
}

// clientBody reads the name in the path and the body.
func (c *call) clientBody() (name string, source []byte, err error) {
	if name, err = clientName("client", c.variable); err == nil {
		source, err = c.body(maxClientBody)
	}
	return name, source, err
}

// clientName returns a client's name in a URL as rules count it. An API key there has to be hashed, because URLs are logged by others.
func clientName(field, text string) (string, error) {
	if len(text) > manage.MaxWord {
		return "", fault.BadField.Of("%s: %d bytes exceed the maximum of %d; send less.", field, len(text), manage.MaxWord).In(field)
	}
	switch name, err := rule.ClientName(text); {
	case err != nil:
		return "", fault.BadField.Of("%s: %s", field, manage.Ended(err.Error())).In(field)
	case name != text && strings.HasPrefix(text, "api_key:"):
		return "", fault.BadField.Of("%s: a URL must not have an API key itself; send its hash: %s.", field, name).In(field)
	default:
		return name, nil
	}
}

// readClient reads the body of a call about a client, which may leave out the name.
func readClient(name string, source []byte) (rule.Client, error) {
	e, err := readObject(source)
	if err != nil {
		return rule.Client{}, err
	}
	if e.Get("client") == nil {
		e.Members = slices.Insert(e.Members, 0, document.Member{Name: document.NewText("client"), Value: document.NewText(name)})
		source = e.JSON()
	}
	c, problems := parseClient(source)
	if len(problems) > 0 {
		return c, badClient(problems)
	}
	if c.Name != name {
		return c, fault.BadField.Of("client: the path has %q and the body has %q; send the same client. To rename a client, add the new one and delete the other.", name, c.Name).
			In("client").Coded("other-client", "path", name, "body", c.Name)
	}
	return c, nil
}

// parseClient reads a client.
func parseClient(source []byte) (rule.Client, rule.Problems) {
	c, problems := rule.ReadClient("", source)
	for i := range problems {
		problems[i].Field = strings.TrimPrefix(problems[i].Field, "a client.")
	}
	return c, problems
}

// readObject reads JSON that is an object.
func readObject(source []byte) (*document.Element, error) {
	var wrong string
	e := document.Read("client.json", string(source), func(f document.Fault) {
		if wrong == "" {
			wrong = f.Message
		}
	})
	if wrong == "" && (e == nil || e.Kind != document.Mapping) {
		wrong = `send an object, such as {"tier": "pro"}`
	}
	if wrong != "" {
		return nil, fault.BadBody.Of("The body is no valid JSON object: %s", manage.Ended(wrong))
	}
	return e, nil
}

// badClient is a client with errors.
func badClient(problems rule.Problems) *fault.Fault {
	return fault.BadField.Of("%s", manage.Unusable(problems)).In(problems[0].Field)
}

// patched returns a client after a merge patch.
func patched(was *rule.Client, patch *document.Element) (rule.Client, error) {
	e, err := readObject(rule.ClientToJSON(was))
	if err != nil {
		return rule.Client{}, err
	}
	e = merge(e, patch)
	if limits := e.Get("limits"); limits != nil && limits.Kind == document.Mapping && len(limits.Members) == 0 {
		e.Members = slices.DeleteFunc(e.Members, func(m document.Member) bool { return m.Value == limits })
	}
	return readClient(was.Name, e.JSON())
}

// merge is the algorithm of RFC 7396: null removes, objects are merged, and anything else replaces what was there.
func merge(into, patch *document.Element) *document.Element {
	if patch.Kind != document.Mapping {
		return patch
	}
	out := &document.Element{Kind: document.Mapping}
	if into == nil || into.Kind != document.Mapping {
		into = out
	}
	for _, m := range into.Members {
		if patch.Get(m.Name.Text) == nil {
			out.Members = append(out.Members, m)
		}
	}
	for _, m := range patch.Members {
		if m.Value.Kind != document.Nothing {
			out.Members = append(out.Members, document.Member{Name: m.Name, Value: merge(into.Get(m.Name.Text), m.Value)})
		}
	}
	return out
}

// clientCondition is what the headers If-Match and If-None-Match demand of a client.
func (h *Handler) clientCondition(c *call, name string) (string, error) {
	match, any, ok := entityTags(c.r.Header["If-Match"])
	none, missing, known := entityTags(c.r.Header["If-None-Match"])
	switch {
	case !ok:
		return "", fault.BadField.Of(`If-Match: not a list of ETags; send the ETag of the client as you read it, with its quotes.`).In("If-Match")
	case !known || len(none) > 0 || missing && (any || len(match) > 0):
		return "", fault.BadField.Of("If-None-Match: send * alone, to add a client that must not be there.").In("If-None-Match")
	case missing:
		return clients.Missing, nil
	case any:
		return clients.Exists, nil
	case len(match) == 0:
		return "", nil
	}
	if was, found := h.options.Clients.Get(name); found && hasTag(match, was.Version) {
		return was.Version, nil
	}
	version := strings.Trim(strings.TrimPrefix(match[0], "W/"), `"`)
	if version == "" || version == clients.Exists || version == clients.Missing {
		return "", &clients.Error{Reason: clients.Mismatch}
	}
	return version, nil // which another instance may have written just now
}

// tagOf is the ETag of a client, and hasTag reports whether it is among some.
func tagOf(version string) string { return `"` + version + `"` }

func hasTag(tags []string, version string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.TrimPrefix(tag, "W/") == tagOf(version) })
}
