package replay

import (
	"cmp"
	"slices"
)

// maxRefused bounds the clients whose refusals are counted apart.
const maxRefused = 1 << 14

// top counts refusals by rule and client, exactly as long as there is room. From
// then on a new one takes the place of the one with the fewest, and its count, which
// bounds by how much its own is too high: the Space-Saving algorithm of Metwally,
// Agrawal and El Abbadi. Whoever has more than the smallest count is in the list.
type top struct {
	room   int
	places map[topKey]int // where in the heap
	heap   []refusals     // the fewest on top
	taken  int64          // how often a place was taken over
	rules  map[int]int64  // how many clients each rule has refused, while that is exact
}

type topKey struct {
	rule   int
	client string
}

type refusals struct {
	topKey
	count, tooHigh int64
	first, last    int64 // when
}

func newTop(room int) *top {
	return &top{room: room, places: make(map[topKey]int), rules: make(map[int]int64)}
}

// add counts a refusal. The client's bytes are the caller's.
func (t *top) add(rule int, client string, now int64) {
	if i, ok := t.places[topKey{rule, client}]; ok {
		t.heap[i].count++
		t.heap[i].last = now
		t.sink(i)
		return
	}
	key := topKey{rule, string([]byte(client))}
	if len(t.heap) < t.room {
		t.rules[rule]++
		t.heap = append(t.heap, refusals{topKey: key, count: 1, first: now, last: now})
		t.places[key] = len(t.heap) - 1
		t.rise(len(t.heap) - 1)
		return
	}
	t.taken++
	least := &t.heap[0]
	delete(t.places, least.topKey)
	*least = refusals{topKey: key, count: least.count + 1, tooHigh: least.count, first: now, last: now}
	t.places[key] = 0
	t.sink(0)
}

func (t *top) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.places[t.heap[i].topKey], t.places[t.heap[j].topKey] = i, j
}

func (t *top) rise(i int) {
	for i > 0 && t.heap[i].count < t.heap[(i-1)/2].count {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (t *top) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.heap[child].count < t.heap[least].count {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}

// most returns those with the most refusals.
func (t *top) most(n int) []refusals {
	all := slices.Clone(t.heap)
	slices.SortFunc(all, func(a, b refusals) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.rule, b.rule), cmp.Compare(a.client, b.client))
	})
	return all[:min(n, len(all))]
}
