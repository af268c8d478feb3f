package rule

import (
	"cmp"

	"github.com/weirhq/weir/internal/document"
)

// Priority tells how important a request is; a greater one is more important. The zero value
// is none, which counts as Normal.
type Priority uint8

const (
	Low Priority = 1 + iota
	Normal
	High
	Critical
)

// priorityNames begin with the most important.
var priorityNames = []string{"critical", "high", "normal", "low"}

var prioritiesElsewhere = map[string]string{
	"medium": "normal", "default": "normal", "critical_plus": "critical", "urgent": "critical", "highest": "critical",
	"background": "low", "batch": "low", "sheddable": "low", "lowest": "low",
}

// ParsePriority parses "critical", "high", "normal" or "low".
func ParsePriority(name string) (Priority, error) {
	i, err := parseWord(priorityNames, prioritiesElsewhere, document.Clip(name, 40))
	if err != nil {
		return 0, err
	}
	return Critical - Priority(i), nil
}

// String returns the name, which ParsePriority accepts, or "" for none.
func (p Priority) String() string {
	if p == 0 {
		return ""
	}
	return wordOf(priorityNames, int(Critical-p), "Priority")
}

// MarshalText returns the name, so that JSON contains the name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses a name as ParsePriority does; "" is none.
func (p *Priority) UnmarshalText(text []byte) (err error) {
	if *p = 0; len(text) > 0 {
		*p, err = ParsePriority(string(text))
	}
	return err
}

// PriorityOf returns the priority that the rule gives to the requests of a client: that of
// the client's override, else of its tier, else of the rule. It is 0 if none of them has
// one. The identity is the result of [Entry.Identity].
func (c *Entry) PriorityOf(identity, tier string) Priority {
	if c.overridePriorities == nil && c.tierPriorities == nil {
		return c.Priority
	}
	return c.specialPriority(identity, tier)
}

func (c *Entry) specialPriority(identity, tier string) Priority {
	return cmp.Or(c.overridePriorities[identity], c.tierPriorities[tier], c.Priority)
}

// isPrioritizing reports whether the rule gives a priority to requests of some client.
func (r *Rule) isPrioritizing() bool {
	return r.Priority != 0 || len(priorities(r.Tiers)) > 0 || len(priorities(r.Overrides)) > 0
}

// priorities are those that quotas have; nil if none has one.
func priorities(quotas map[string]Quota) map[string]Priority {
	var found map[string]Priority
	for name, q := range quotas {
		if q.Priority == 0 {
			continue
		}
		if found == nil {
			found = map[string]Priority{}
		}
		found[name] = q.Priority
	}
	return found
}

// validatePriorities is for sets that were not parsed.
func (r *Rule) validatePriorities() error {
	all := []Priority{r.Priority}
	for _, quotas := range []map[string]Quota{r.Tiers, r.Overrides} {
		for _, q := range quotas {
			all = append(all, q.Priority)
		}
	}
	for _, p := range all {
		if p > Critical {
			return invalidQuota("priority", "%d is unknown; choose one of Low, Normal, High and Critical", p)
		}
	}
	return nil
}
