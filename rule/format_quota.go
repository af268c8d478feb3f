package rule

import (
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/document"
)

// addQuota adds limit or limits, and burst.
func addQuota(e *document.Element, q Quota) {
	switch len(q.Rates) {
	case 0:
		if q.Unlimited {
			e.Add("limit", document.NewText(unlimited))
		}
	case 1:
		e.Add("limit", document.NewText(q.Rates[0].String()))
	default:
		rates := make([]string, len(q.Rates))
		for i, r := range q.Rates {
			rates[i] = r.String()
		}
		e.Add("limits", document.NewList(rates))
	}
	if q.Burst != 0 {
		e.Add("burst", document.NewInteger(q.Burst))
	}
}

// quotasElement writes a quota that is nothing but a limit as that.
func quotasElement(quotas map[string]Quota) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		q := &document.Element{Kind: document.Mapping}
		addQuota(q, quotas[name])
		if limit := q.Get("limit"); limit != nil && len(q.Members) == 1 {
			q = limit
		}
		e.Add(name, q)
	}
	return e.OrNil()
}
