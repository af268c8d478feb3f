package redis

import (
	"strings"

	"github.com/weirhq/weir"
)

// keyOf returns the name of an op's state. A kind has no brace, so what comes after
// the first one behind it is the client's key and nothing else.
func (s *Store) keyOf(op *weir.Op) string {
	return s.prefix + op.Limit.KindText() + "{" + op.Key + "}"
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
