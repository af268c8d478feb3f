package redis

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir"
)

// keyOf returns the name of an op's state. A kind has no brace, so what comes after
// the first one behind it is the client's key and nothing else.
func (s *Store) keyOf(op *weir.Op) string {
	return s.prefix + op.Limit.KindText() + tagBegin(op.Key) + op.Key + "}"
}

// tagBegin is what is before a client's key. Between the first braces of a name there must be
// something: else each name of the client would be on a slot of its own. So a key that begins
// with a brace that closes gets a sign in front of it, and another one that looks so, too.
func tagBegin(key string) string {
	if rest := strings.TrimLeft(key, "%"); rest == "" || rest[0] == '}' {
		return "{%"
	}
	return "{"
}

// checkPrefix reports whether what belongs to one client can be on one slot.
func checkPrefix(prefix string) error {
	if _, rest, found := strings.Cut(prefix, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); !closed || tag == "" {
			return fmt.Errorf("redis: the prefix %q has half a hash tag; write it as {tag}, or leave out the braces", prefix)
		}
	}
	return nil
}

// slots is how many a cluster has.
const slots = 16384

// slotOf is the slot of a key in a cluster: CRC-16 of what is between the first
// braces, if there is anything.
func slotOf(key string) uint16 {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			key = tag
		}
	}
	sum := uint16(0)
	for i := range len(key) {
		sum = sum<<8 ^ crc16[byte(sum>>8)^key[i]]
	}
	return sum % slots
}

// crc16 is the table of the polynomial x^16 + x^12 + x^5 + 1, which Redis uses.
var crc16 = makeCRC16()

func makeCRC16() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			carry := sum & 0x8000
			sum <<= 1
			if carry != 0 {
				sum ^= 0x1021
			}
		}
		table[i] = sum
	}
	return table
}
