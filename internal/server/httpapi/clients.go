package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/fault"
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

func entryAnswer(e *clients.Entry) EntryAnswer {
	a, _ := sizedAnswer(e)
	return a
}

// sizedAnswer tells how many bytes the answer has, too, without those of its fields that are always short.
func sizedAnswer(e *clients.Entry) (a EntryAnswer, size int) {
	text := rule.ClientToJSON(&e.Client)
	if err := json.Unmarshal(text, &a); err != nil {
		panic(err) // both have the same fields
	}
	a.Version, a.By, a.At = e.Version, e.By, e.At
	return a, len(text) + len(e.By)
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
		Tier: q.text("tier"), Kind: q.text("kind"), Contains: q.text("contains"), After: q.text("after"),
		Limit: int(q.whole("limit", clients.UsualPage, 1, clients.MaxPage)),
	}
	if parent := q.text("parent"); parent != "" {
		var err error
		want.Parent, err = clientName("parent", parent)
		q.wrong(err)
	}
	for _, name := range []string{"after", "contains"} {
		q.wrong(withoutKey(name, q.text(name)))
	}
	if q.err != nil {
		return nil, q.err
	}
	page, next := h.options.Clients.List(want)
	answer := EntriesAnswer{Stale: h.stale()}
	answer.Clients, answer.Next = clients.EndPage(page, next, sizedAnswer)
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
	if c.upToDate(line[0].Version) {
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
			return nil, clients.ErrChanged
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
		c.setTag(entry.Version)
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
