package frame

// Counter finds the most frequent keys in bounded memory, with the Space-Saving
// algorithm. It has room for size keys. When it is full, a new key replaces the rarest
// one and inherits its count, which becomes the error of the new key. So every key with
// more than 1/size of all counts is found, and no count is too high by more than 1/size
// of all counts. It is not safe for concurrent use.
type Counter struct {
	size  int
	total int64
	at    map[string]int // place in heap
	heap  []Entry        // the rarest first
}

// NewCounter returns a counter with room for size keys.
func NewCounter(size int) *Counter {
	return &Counter{size: max(size, 1), at: make(map[string]int)}
}

// Add counts a key n times. It keeps no reference to the key.
func (c *Counter) Add(key []byte, n int64) {
	c.total += n
	c.AddAnother(key, n)
}

// AddAnother counts a further key of requests that Add has already counted.
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

// Sketch returns the current counts. You can keep adding to the counter.
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
