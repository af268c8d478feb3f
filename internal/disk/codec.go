package disk

// Codec walks over what a snapshot has, and writes or reads what it meets, so that the format is said once.
type Codec struct {
	In  *Reader // nil while something is written
	Out []byte  // what was written

	To *Writer // gets what is in Out after each element; nil to leave it there
}

// Reading reports whether what is walked over is read.
func (c *Codec) Reading() bool { return c.In != nil }

// OK reports whether what was read so far is as it has to be; false if nothing is read.
func (c *Codec) OK() bool { return c.Reading() && c.In.Err == nil }

// Must fails unless what was read is as it has to be.
func (c *Codec) Must(ok bool) {
	if c.Reading() {
		c.In.Must(ok)
	}
}

// Number is of a number in a range.
func Number[N ~int | ~int64 | ~uint8](c *Codec, n *N, least, most int64) {
	if c.Reading() {
		*n = N(c.In.Between(least, most))
	} else {
		c.Out = AppendWords(c.Out, int64(*n))
	}
}

// MaxExact is the largest number that is exact in a script of Redis.
const MaxExact = 1<<53 - 1

// Count is of a number that is not negative, and exact in a script.
func Count[N ~int64](c *Codec, n *N) { Number(c, n, 0, MaxExact) }

// Text is of a text whose length has to be in a range.
func Text[T ~string | ~[]byte](c *Codec, s *T, least, most int64) {
	if c.Reading() {
		*s = T(c.In.Bytes(least, most))
	} else {
		c.Out = append(AppendWords(c.Out, int64(len(*s))), *s...)
	}
}

// Raw is of bytes whose number is known.
func (c *Codec) Raw(p []byte) {
	if c.Reading() {
		c.In.Raw(p)
	} else {
		c.Out = append(c.Out, p...)
	}
}

// More is of whether another element follows.
func (c *Codec) More(another bool) bool {
	if c.Reading() {
		return c.In.More()
	}
	n := 0
	if another {
		n = 1
	}
	Number(c, &n, 0, 1)
	if c.To != nil {
		c.To.Raw(c.Out)
		c.Out = c.Out[:0]
	}
	return another
}

// Each is of the elements of a list, each of which is made anew when it is read.
func Each[T any](c *Codec, all []T, one func(*T)) {
	for i := 0; c.More(i < len(all)); i++ {
		x := new(T)
		if !c.Reading() {
			x = &all[i]
		}
		one(x)
	}
}

// List is the same, and puts what is read into the list.
func List[T any](c *Codec, all *[]T, one func(i int, x *T)) {
	for i := 0; c.More(i < len(*all)); i++ {
		if c.Reading() {
			*all = append(*all, *new(T))
		}
		one(i, &(*all)[i])
	}
}
