package rule

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"
)

const prefixAPIKey = "api_key:"

// newKey makes ready what a rule counts by.
func newKey(sources []Source, bits int) ([]part, error) {
	if len(sources) == 0 {
		return nil, errors.New("key: it is missing; say who is counted apart, or write global for everyone together")
	}
	parts := make([]part, len(sources))
	for i, s := range sources {
		p, err := newPart(s, bits)
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		parts[i] = p
	}
	return parts, nil
}

func newPart(s Source, bits int) (part, error) {
	p := part{source: s, secret: s.secret(), bits: bits}
	switch s.Kind {
	case IP:
		p.prefix = "ip:"
	case User:
		p.prefix = "user:"
	case APIKey:
		p.prefix = prefixAPIKey
	case Global:
		p.prefix = "global"
	case Header:
		// The case of a header's name must not decide who somebody is.
		p.source.Name = textproto.CanonicalMIMEHeaderKey(s.Name)
		p.host = p.source.Name == "Host"
		return p.named("header:")
	case Cookie:
		return p.named("cookie:")
	case Query:
		return p.named("query:")
	case Attribute:
		return p.named("attr:")
	default:
		return part{}, fmt.Errorf("source %d is unknown; use one of the constants of package rule", s.Kind)
	}
	return p, nil
}

func (p part) named(kind string) (part, error) {
	if p.source.Name == "" {
		return part{}, fmt.Errorf("%s has no name; write for example %sX", strings.TrimSuffix(kind, ":"), kind)
	}
	if len(p.source.Name) > maxValue {
		return part{}, fmt.Errorf("%s has a name of %d bytes; at most %d are allowed", strings.TrimSuffix(kind, ":"), len(p.source.Name), maxValue)
	}
	p.prefix = kind + string(appendEscaped(nil, p.source.Name)) + ":"
	return p, nil
}
