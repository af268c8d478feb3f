package replay

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/replay/accesslog"
	"github.com/weirhq/weir/rule"
)

// values finds in an entry what rules may be keyed by.
type values struct {
	entry *accesslog.Entry
	extra []accesslog.Extra
	named map[string]string // attributes, used again for each request
}

func (v *values) Header(name string, from int) (string, int) {
	return rule.Single(v.find(accesslog.Header, name), from)
}

func (v *values) Cookie(name string, from int) (string, int) {
	return rule.Single(v.find(accesslog.Cookie, name), from)
}

func (v *values) find(kind accesslog.ExtraKind, name string) string {
	for i, x := range v.extra {
		if x.Kind == kind && x.Name == name {
			return v.entry.Extra[i]
		}
	}
	return ""
}

// Query finds the values of a parameter, as servers read it.
func (v *values) Query(name string, from int) (string, int) {
	query := v.entry.Query
	for at := from; at < len(query); {
		pair, _, _ := strings.Cut(query[at:], "&")
		at += len(pair) + 1
		key, value, _ := strings.Cut(pair, "=")
		if value = plain(value); value != "" && plain(key) == name {
			return value, at
		}
	}
	return "", 0
}

func plain(s string) string {
	if strings.ContainsAny(s, "%+") {
		if decoded, err := url.QueryUnescape(s); err == nil {
			return decoded
		}
	}
	return s
}

// attributes returns those that the entry has; nil if the log has none at all.
func (v *values) attributes() map[string]string {
	clear(v.named)
	for i, x := range v.extra {
		if x.Kind == accesslog.Attribute && v.entry.Extra[i] != "" {
			if v.named == nil {
				v.named = make(map[string]string)
			}
			v.named[x.Name] = v.entry.Extra[i]
		}
	}
	return v.named
}
