package httpapi

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// clientBody reads the name in the path and the body.
func (c *call) clientBody() (name string, source []byte, err error) {
	if name, err = clientName("client", c.variable); err == nil {
		source, err = c.body(maxClientBody)
	}
	return name, source, err
}

// clientName returns a client's name in a URL as rules count it. An API key there has to be hashed, because URLs are logged by others.
func clientName(field, text string) (string, error) {
	switch name, err := manage.ClientName(field, text); {
	case err != nil:
		return "", err
	case name != text && strings.HasPrefix(text, "api_key:"):
		return "", fault.Field(field, "a URL must not have an API key itself; send its hash: %s.", name)
	default:
		return name, nil
	}
}

// withoutKey reports a part of a name in a URL that has an API key itself, and not its hash.
func withoutKey(field, text string) error {
	const key, hashed = "api_key:", "api_key:sha256:"
	if strings.HasPrefix(text, key) && !strings.HasPrefix(text, hashed) && !strings.HasPrefix(hashed, text) {
		return fault.Field(field, "a URL must not have an API key itself; send the beginning of its hash, as in api_key:sha256:5d41.")
	}
	return nil
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
		return c, fault.Field("client", "the path has %q and the body has %q; send the same client. To rename a client, add the new one and delete the other.",
			name, c.Name).Coded("other-client", "path", name, "body", c.Name)
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
		return "", fault.Field("If-Match", "not a list of ETags; send the ETag of the client as you read it, with its quotes.")
	case !known || len(none) > 0 || missing && (any || len(match) > 0):
		return "", fault.Field("If-None-Match", "send * alone, to add a client that must not be there.")
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
		return "", clients.ErrChanged
	}
	return version, nil // which another instance may have written just now
}
