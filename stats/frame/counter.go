package frame

// Counter finds the keys that come most often, in memory that does not depend on how
// many keys there are: Space-Saving. A key without a place takes that of the rarest one,
// with its count, which is then its error. So no key that came more often than one in
// size is missed, and no count is off by more than that. It is not safe for concurrent
// use.
type Counter struct {
	size  int
	total int64
	at    map[string]int // place in heap
	heap  []Entry        // the rarest first
}

// NewCounter returns one with places for so many keys.
func NewCounter(size int) *Counter {
	return &Counter{size: max(size, 1), at: make(map[string]int)}
}

// Add counts a key n times. It keeps no reference to the key.
func (c *Counter) Add(key []byte, n int64) {
	c.total += n
	c.AddAnother(key, n)
}

// AddAnother counts one more key of requests that were added already.
func (c *Counter) AddAnother(key []byte, n int64) {
	if i, ok := c.at[string(key)]; ok {
		c.heap[i].Count += n
		c.down(i)
		return
	}
	name := string(key)
	if len(c.heap) < c.size {
		c.heap = append(c.heap, Entry{Key: name, Count: n})
		c.at[name] = len(c.heap) - 1
		c.up(len(c.heap) - 1)
		return
	}
	rarest := &c.heap[0]
	delete(c.at, rarest.Key)
	*rarest = Entry{Key: name, Count: rarest.Count + n, Error: rarest.Count}
	c.at[name] = 0
	c.down(0)
}

// Sketch returns what is known. The counter goes on.
func (c *Counter) Sketch() Sketch {
	s := Sketch{Entries: append([]Entry(nil), c.heap...), Total: c.total}
	if len(c.heap) == c.size {
		s.Floor = c.heap[0].Count
	}
	s.order()
	return s
}

func (c *Counter) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if c.heap[parent].Count <= c.heap[i].Count {
			return
		}
		c.swap(i, parent)
		i = parent
	}
}

func (c *Counter) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.heap); child++ {
			if c.heap[child].Count < c.heap[least].Count {
				least = child
			}
		}
		if least == i {
			return
		}
		c.swap(i, least)
		i = least
	}
}

func (c *Counter) swap(i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	c.at[c.heap[i].Key], c.at[c.heap[j].Key] = i, j
}
