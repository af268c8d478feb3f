package simulate

import "github.com/weirhq/weir"

// busiest is the client who asks for the most units; of several, the first.
func (t Traffic) busiest() string {
	units := make(map[string]int64)
	most := ""
	for i := range t.Requests {
		r := &t.Requests[i]
		units[r.Key] += r.Cost
	}
	for i := range t.Requests {
		if key := t.Requests[i].Key; i == 0 || units[key] > units[most] {
			most = key
		}
	}
	return most
}

// budget is what one client could still have taken at the end of each slice.
func budget(limit *weir.Compiled, requests []Request, key string, a axis) []int64 {
	left := make([]int64, a.Count)
	var record weir.Record
	done := 0
	look := func(before int) {
		for ; done < before; done++ {
			end := a.Begin + a.Slice*weir.Micros(done+1) - 1
			op := weir.Op{Key: key, Limit: limit}
			left[done] = op.Peek(record.State, record.Tail, end).Remaining
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.Key != key {
			continue
		}
		look(a.slice(r.At))
		op := weir.Op{Key: key, Limit: limit, Cost: r.Cost, MaxDelay: r.MaxDelay}
		next, _ := op.Decide(record.State, record.Tail, r.At)
		record.Keep(limit, next)
	}
	look(a.Count)
	return left
}
