package redis

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

// letters name the algorithms in keys, where every byte counts.
var letters = map[weir.Algorithm]string{
	weir.TokenBucket: "T", weir.LeakyBucket: "K", weir.FixedWindow: "F",
	weir.SlidingWindow: "W", weir.SlidingLog: "L", weir.SlidingBuckets: "B",
}

// keyOf returns the name of an op's state. Neither a name nor a kind has a brace,
// so what comes after the first one is the client's key and nothing else.
func (s *Store) keyOf(op *weir.Op) string {
	limit := op.Limit.Limit()
	var b strings.Builder
	b.Grow(len(s.prefix) + len(limit.Name) + len(op.Key) + 16)
	b.WriteString(s.prefix)
	if limit.Name != "" {
		b.WriteString(escapeName(limit.Name))
		b.WriteByte(':')
	}
	b.WriteString(letters[limit.Algorithm])
	b.WriteString(duration.Format(limit.Period))
	if limit.Algorithm == weir.SlidingBuckets {
		b.WriteByte('/')
		b.WriteString(strconv.FormatInt(op.Limit.Numbers().Buckets, 10))
	}
	b.WriteByte('{')
	b.WriteString(op.Key)
	b.WriteByte('}')
	return b.String()
}

// escapeName keeps names from being taken for what follows them.
func escapeName(name string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A").Replace(name)
}
