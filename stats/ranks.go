package stats

import "github.com/weirhq/weir/stats/frame"

// ranks are the keys of the last ten seconds, counted.
type ranks struct {
	all    [2]*frame.Counter             // allowed and denied, by the request
	byRule map[string]*[2]*frame.Counter // by the rule
}

// Places for keys: as many as an archive keeps, and as many again, so that those which
// are kept have little error.
const (
	placesAll  = 4 * frame.MaxRankedAll
	placesRule = 4 * frame.MaxRanked
)

func newRanks() *ranks {
	return &ranks{
		all:    [2]*frame.Counter{frame.NewCounter(placesAll), frame.NewCounter(placesAll)},
		byRule: map[string]*[2]*frame.Counter{},
	}
}

// count counts a key n times: for the rule by what it said, and over all rules by what
// became of the request, once for each key and request.
func (r *ranks) count(rule string, f flags, key []byte, n int64) {
	of := r.byRule[rule]
	if of == nil {
		of = &[2]*frame.Counter{frame.NewCounter(placesRule), frame.NewCounter(placesRule)}
		r.byRule[rule] = of
	}
	of[f.half(ruleDenied)].Add(key, n)
	switch all := r.all[f.half(requestDenied)]; {
	case f&sameKey != 0:
	case f&otherKey != 0:
		all.AddAnother(key, n)
	default:
		all.Add(key, n)
	}
}

// put writes what was counted into a frame.
func (r *ranks) put(f *frame.Frame) {
	if len(r.byRule) == 0 {
		return
	}
	all := f.Ranking("")
	all.Allowed, all.Denied = r.all[0].Sketch(), r.all[1].Sketch()
	for id, of := range r.byRule {
		one := f.Ranking(id)
		one.Allowed, one.Denied = of[0].Sketch(), of[1].Sketch()
	}
	f.Trim()
}
