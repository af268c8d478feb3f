package rule

import (
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// checkOverrides finds identities that no client of the rule can have, and those
// that are one client's in two spellings.
func (p *parser) checkOverrides(r *pending, e *document.Element) {
	key, err := newKey(r.Key, 64)
	if err != nil {
		return // the key is at fault, which was reported
	}
	first := map[string]document.Place{}
	for _, m := range e.Members {
		text := m.Name.Text
		if text == "" || m.Name.Kind == document.Nothing {
			continue
		}
		identity, err := canonicalIdentity(key, text)
		switch at, twice := first[identity]; {
		case err != nil && tellsSecret(r.Key, text):
			p.errorf("E023", m.Name.Place, "overrides", "no client is called this, because the key is %s; write it as %s", sourcesText(r.Key), example(key))
		case err != nil:
			p.errorf("E023", m.Name.Place, "overrides", "no client is called %s, because the key is %s: %v", document.Quote(text), sourcesText(r.Key), err)
		case twice && at.Line > 0:
			p.errorf("E023", m.Name.Place, "overrides", "this is the client of line %d in another spelling; remove one of them", at.Line)
		default:
			first[identity] = m.Name.Place
		}
	}
}

// overridden is whom the overrides name.
func (r *pending) overridden() []placed[string] {
	e := r.fields["overrides"]
	if e == nil || len(e.Members) == 0 {
		return nil
	}
	names := make([]placed[string], len(e.Members))
	for i, m := range e.Members {
		names[i] = placed[string]{m.Name.Text, m.Name.Place}
	}
	return names
}

// tellsSecret is whether an override names a client by something that must not be
// shown.
func tellsSecret(key []Source, text string) bool {
	if strings.Contains(text, marker) {
		return false
	}
	for _, s := range key {
		if s.secret() {
			return true
		}
	}
	return strings.Contains(text, prefixAPIKey)
}

func sourcesText(key []Source) string {
	parts := make([]string, len(key))
	for i, s := range key {
		parts[i] = s.String()
	}
	return strings.Join(parts, " and ")
}
