package engine

import (
	"slices"

	"github.com/weirhq/weir/internal/duration"
)

// Name is how headers and denials call the limit of a result: by the id of its rule and,
// if the rule has several limits for this client, the period. A colon is not part of an
// id, so no two names are the same.
func (v *Verdict) Name(r *Result) string {
	var room [128]byte
	if name := v.AppendName(room[:0], r); string(name) != r.Rule.ID {
		return string(name)
	}
	return r.Rule.ID
}

// AppendName appends the Name.
func (v *Verdict) AppendName(dst []byte, r *Result) []byte {
	dst = appendID(dst, r.Rule.ID)
	for i := range v.Results {
		if other := &v.Results[i]; other.Rule == r.Rule && other.Quota != r.Quota {
			return duration.Append(append(dst, ':'), r.Quota.Limit().Period)
		}
	}
	return dst
}

// names are those of some of the limits that were asked, each once. Shadow rules are not
// among them.
func (v *Verdict) names(which func(*Result) bool) []string {
	var names []string
	for i := range v.Results {
		if r := &v.Results[i]; r.Asked && !r.Shadow && which(r) {
			if name := v.Name(r); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// appendID appends the id of a rule. Those that [rule.Parse] accepts stay as they
// are; in others, what a header cannot have is escaped as in a URL.
func appendID(dst []byte, id string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(id) {
		switch b := id[i]; {
		case b <= 0x20, b >= 0x7f, b == '"', b == '\\', b == '%', b == ':':
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return dst
}
