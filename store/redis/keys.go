package redis

import "github.com/weirhq/weir"

// keyOf returns the name of an op's state. A kind has no brace, so what comes after
// the first one behind it is the client's key and nothing else.
func (s *Store) keyOf(op *weir.Op) string {
	return s.prefix + op.Limit.KindText() + "{" + op.Key + "}"
}
