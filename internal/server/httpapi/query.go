package httpapi

import (
	"net/url"
	"slices"
	"sort"
)

// query reads the query, which may have these parameters, each once, and no other.
func (c *call) query(known ...string) (url.Values, *Problem) { return c.queryWith("", known...) }

// queryWith is query with one parameter that may be there several times.
func (c *call) queryWith(many string, known ...string) (url.Values, *Problem) {
	if many != "" {
		known = append([]string{many}, known...)
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, badField.of("The query cannot be read; escape what is special in it, as in ?key=user%%3Aalice.")
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return nil, unknownName("parameter", name, known)
		case len(query[name]) > 1 && name != many:
			return nil, badField.of("%s: it is there %d times; send it once.", name, len(query[name])).in(name)
		}
	}
	return query, nil
}
