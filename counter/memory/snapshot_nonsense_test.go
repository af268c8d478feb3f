package memory

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/disk"
)

// What no store writes is rejected, even if the checksum fits.
func TestNonsenseIsRejected(t *testing.T) {
	const far = weir.Micros(1 << 60)
	most := int64(counter.MaxScore)
	minute := ident{kind: kindSliding, span: time.Minute, name: "n"}
	named := ident{kind: kindCounter, zone: "UTC", name: "n"}
	ring := ident{kind: kindBoard, zone: "UTC", name: "n"}
	list := ident{kind: kindHot, span: time.Minute, name: "n"}
	one := func(id ident, b body) []byte {
		var c disk.Codec
		(&entry{id: id, body: b, expires: far}).walk(&c)
		return c.Out
	}
	steps := func(parts ...table) *sliding {
		s := &sliding{latest: 100}
		for i, p := range parts {
			*s.part(100 - int64(i)) = p
		}
		return s
	}
	event := func(id int64) counter.Event { return counter.Event{ID: id, Item: "a", At: time.Unix(1, 0)} }
	members := ident{kind: kindDistinct, zone: "UTC", name: "n"}
	sketched := func(all ...sketch) *cells {
		c := &cells{windows: windows[counter.Amount]{{value: 1}}, members: &distinct{}}
		copy(c.members.sketches[:], all)
		return c
	}
	times := ident{kind: kindDistribution, zone: "UTC", name: "n", window: counter.Year}
	spread := func(index int64, d counter.Distribution) window[counter.Distribution] {
		return window[counter.Distribution]{index, d}
	}
	fine := counter.Distribution{Count: 3, Sum: 10, Min: 1, Max: 9, Buckets: []counter.Bucket{{Number: 1, Count: 2}, {Number: counter.MaxBuckets - 1, Count: 1}}}
	with := func(change func(*counter.Distribution)) []byte {
		d := fine
		d.Buckets = slices.Clone(d.Buckets)
		change(&d)
		return one(times, &distributions{windows[counter.Distribution]{spread(1, d)}})
	}
	good := map[string][]byte{
		"distinct":     one(members, sketched(sketch{hashes: []uint64{1, 2}}, sketch{index: 1, registers: make([]uint8, registers)})),
		"distribution": one(times, &distributions{windows[counter.Distribution]{spread(1, fine), spread(2, fine)}}),
		"counter":      one(named, &cells{windows: windows[counter.Amount]{{index: -1}, {index: 3, value: 5}}}),
		"sequence":     one(ident{kind: kindSequence, name: "n"}, &sequence{last: 7}),
		"board":        one(ring, &board{ring: [counter.BoardWindows]boardWindow{{index: 0, table: table{"a": -1}}}}),
		"sliding":      one(minute, steps(table{"a": 1}, table{"a": most - 1})),
		"list":         one(list, &hot{sliding: *steps(), last: 9, events: []counter.Event{event(8), event(9)}}),
	}
	for name, e := range good {
		if err := restoreEntries(e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, e := range map[string][]byte{
		"no such kind":          disk.AppendWords(nil, int64(kindDistribution)+1, int64(far)),
		"no name":               one(ident{kind: kindSequence}, &sequence{}),
		"a long name":           one(ident{kind: kindSequence, name: strings.Repeat("n", counter.MaxNameLen+1)}, &sequence{}),
		"no zone":               one(ident{kind: kindCounter, name: "n"}, &cells{windows: windows[counter.Amount]{{}}}),
		"no window":             one(ident{kind: kindCounter, zone: "UTC", name: "n", window: 9}, &cells{windows: windows[counter.Amount]{{}}}),
		"a number below 0":      one(ident{kind: kindSequence, name: "n"}, &sequence{last: -1}),
		"no cells":              one(named, &cells{}),
		"cells in disorder":     one(named, &cells{windows: windows[counter.Amount]{{index: 3}, {index: 3}}}),
		"too many cells":        one(named, manyCells(maxCells+1)),
		"too large an amount":   one(named, &cells{windows: windows[counter.Amount]{{value: 1<<63 - 1}}}),
		"a sketch of disorder":  one(members, sketched(sketch{hashes: []uint64{2, 1}})),
		"a sketch elsewhere":    one(members, sketched(sketch{index: 1, hashes: []uint64{1}})),
		"too high a rank":       one(members, sketched(sketch{registers: bytes.Repeat([]byte{52}, registers)})),
		"no values":             with(func(d *counter.Distribution) { d.Buckets = nil }),
		"an empty bucket":       with(func(d *counter.Distribution) { d.Buckets[0].Count = 0 }),
		"no such bucket":        with(func(d *counter.Distribution) { d.Buckets[1].Number = counter.MaxBuckets }),
		"buckets in disorder":   with(func(d *counter.Distribution) { d.Buckets[1].Number = 1 }),
		"a sum below 0":         with(func(d *counter.Distribution) { d.Sum = -1 }),
		"more than the most":    with(func(d *counter.Distribution) { d.Min = 10 }),
		"too many values":       with(func(d *counter.Distribution) { d.Buckets[0].Count, d.Buckets[1].Count = exact, 1 }),
		"windows in disorder":   one(times, &distributions{windows[counter.Distribution]{spread(2, fine), spread(1, fine)}}),
		"a score of 0":          one(ring, &board{ring: [counter.BoardWindows]boardWindow{{table: table{"a": 0}}}}),
		"too high a score":      one(ring, &board{ring: [counter.BoardWindows]boardWindow{{table: table{"a": most + 1}}}}),
		"a window twice":        one(ring, &board{ring: [counter.BoardWindows]boardWindow{{table: table{}}, {table: table{}}}}),
		"no time to slide in":   one(ident{kind: kindSliding, name: "n"}, steps()),
		"half a second":         one(ident{kind: kindSliding, span: time.Second / 2, name: "n"}, steps()),
		"a step of no time":     one(minute, &sliding{latest: 1 << 52}),
		"a score that falls":    one(minute, steps(table{"a": -1})),
		"too high a sum":        one(minute, steps(table{"a": 1}, table{"a": most})),
		"events in disorder":    one(list, &hot{sliding: *steps(), last: 9, events: []counter.Event{event(9), event(8)}}),
		"events of the future":  one(list, &hot{sliding: *steps(), last: 7, events: []counter.Event{event(8)}}),
		"events that were lost": one(list, &hot{sliding: *steps(), last: 9, lost: 8, events: []counter.Event{event(8)}}),
	} {
		if err := restoreEntries(e); err == nil || !strings.Contains(err.Error(), "it is damaged: it contains an invalid value") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := restoreEntries(good["list"], good["list"]); err == nil {
		t.Error("an entry may be there twice")
	}
}

func manyCells(n int) *cells {
	c := &cells{}
	for i := range n {
		c.windows = append(c.windows, window[counter.Amount]{index: int64(i)})
	}
	return c
}

// restoreEntries makes a snapshot of entries, and restores it.
func restoreEntries(entries ...[]byte) error {
	var records []record
	for _, e := range entries {
		records = append(records, record{bytes: e})
	}
	var b bytes.Buffer
	if err := writeRecords(&b, records); err != nil {
		return err
	}
	return New(Options{}).Restore(&b)
}
