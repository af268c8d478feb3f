package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkHost reports a host that no request could have.
func checkHost(name string) error {
	parent := strings.TrimPrefix(name, "*.")
	switch host := canonicalName(parent); {
	case host == "" || name == "*":
		return fmt.Errorf("host: %q is no name; leave out host for all of them", name)
	case len(host) > maxHost:
		return fmt.Errorf("host: %q is longer than the %d bytes that a name may have", name, maxHost)
	case strings.Contains(host, "*"):
		return fmt.Errorf("host: in %q a * is not at the beginning, before a dot; write *.example.com for every name below example.com", name)
	}
	return nil
}

// newConditions makes the attributes of a rule ready, in the order of their names.
func newConditions(attributes map[string][]string) ([]condition, error) {
	var list []condition
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		values := sortedSet(slices.Clone(attributes[name]))
		if name == "" {
			return nil, errors.New("attributes: one has no name; give it one, or remove it")
		}
		if len(values) > 0 && values[0] == "" {
			return nil, fmt.Errorf("attributes: %s: an empty value is as good as none; remove it, or write no value for any", name)
		}
		list = append(list, condition{name, values})
	}
	return list, nil
}
