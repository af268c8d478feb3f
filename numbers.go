package weir

// Numbers are what the arithmetic computes with, for stores that have it written
// down a second time in another language.
type Numbers struct {
	Period         int64 // microseconds
	Capacity       int64 // the most units that can be taken at once
	Drain, Unit    int64 // a bucket: parts that drain in a microsecond, parts of a unit
	Full           int64 // a bucket: Capacity × Unit
	Width, Buckets int64 // sub-windows: microseconds of one, and how many
}

// Numbers returns the limit's numbers; those of other algorithms are 0.
func (c *Compiled) Numbers() Numbers {
	return Numbers{
		Period: c.period, Capacity: c.capacity,
		Drain: c.n, Unit: c.p, Full: c.full,
		Width: c.width, Buckets: c.buckets,
	}
}
