package memory

import (
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/disk"
)

// Entries of a snapshot. The numbers of kinds and windows are part of the format.

func appendEntry(b []byte, e *entry) []byte {
	b = disk.AppendWords(b, int64(e.id.kind), int64(e.expires))
	switch x := e.body.(type) {
	case *cells:
		b = disk.AppendTexts(disk.AppendWords(b, int64(e.id.window)), e.id.zone, e.id.group, e.id.name)
		b = appendCells(b, x)
		if x.members != nil {
			b = appendDistinct(b, x.members)
		}
		return b
	case *distributions:
		b = disk.AppendTexts(disk.AppendWords(b, int64(e.id.window)), e.id.zone, e.id.group, e.id.name)
		return appendDistributions(b, x)
	case *sequence:
		return disk.AppendWords(disk.AppendTexts(b, e.id.name), x.last)
	case *board:
		b = disk.AppendTexts(disk.AppendWords(b, int64(e.id.window)), e.id.zone, e.id.name)
		return appendBoard(b, x)
	case *sliding:
		b = disk.AppendTexts(disk.AppendWords(b, int64(e.id.span)), e.id.name)
		return appendSliding(b, x)
	default:
		b = disk.AppendTexts(disk.AppendWords(b, int64(e.id.span)), e.id.name)
		return appendHot(b, x.(*hot))
	}
}

func appendCells(b []byte, c *cells) []byte {
	for _, x := range c.cells {
		b = disk.AppendWords(b, 1, x.index, int64(x.amount))
	}
	return disk.AppendWords(b, 0)
}

func appendDistinct(b []byte, d *distinct) []byte {
	b = append(b, d.seed[:]...)
	for i := range d.sketches {
		s := &d.sketches[i]
		b = disk.AppendTexts(disk.AppendWords(b, s.index), string(s.bytes()))
	}
	return b
}

func appendDistributions(b []byte, d *distributions) []byte {
	for i := range d.windows {
		x := &d.windows[i]
		b = disk.AppendWords(b, 1, x.index, int64(x.Sum), int64(x.Min), int64(x.Max))
		for _, bucket := range x.Buckets {
			b = disk.AppendWords(b, 1, int64(bucket.Number), bucket.Count)
		}
		b = disk.AppendWords(b, 0)
	}
	return disk.AppendWords(b, 0)
}

func appendTable(b []byte, t table) []byte {
	for member, score := range t {
		b = disk.AppendWords(disk.AppendTexts(disk.AppendWords(b, 1), member), score)
	}
	return disk.AppendWords(b, 0)
}

// appendBoard leaves out windows that were never used.
func appendBoard(b []byte, x *board) []byte {
	for i := range x.ring {
		if w := &x.ring[i]; w.table != nil {
			b = appendTable(disk.AppendWords(b, 1, w.index, w.dropped), w.table)
		}
	}
	return disk.AppendWords(b, 0)
}

// appendSliding has the steps, the oldest first. Their sum can be made of them.
func appendSliding(b []byte, x *sliding) []byte {
	b = disk.AppendWords(b, x.latest)
	for step := x.latest - counter.Steps; step <= x.latest; step++ {
		b = appendTable(disk.AppendWords(b, x.dropped[slot(step)]), *x.part(step))
	}
	return b
}

func appendHot(b []byte, h *hot) []byte {
	b = appendSliding(b, &h.sliding)
	b = disk.AppendWords(b, h.threshold, h.cool, int64(h.ends), h.last, h.lost)
	for item, since := range h.since {
		b = disk.AppendWords(disk.AppendTexts(disk.AppendWords(b, 1), item), int64(since))
	}
	b = disk.AppendWords(b, 0)
	for i := range h.events {
		e := &h.events[i]
		turned := int64(0)
		if e.Hot {
			turned = 1
		}
		b = disk.AppendTexts(disk.AppendWords(b, 1, e.ID), e.Item)
		b = disk.AppendWords(b, turned, e.Hits, e.At.UnixMicro())
	}
	return disk.AppendWords(b, 0)
}
