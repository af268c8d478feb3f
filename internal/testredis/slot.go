package testredis

import "strings"

// slots is how many parts a cluster's keys are divided into.
const slots = 16384

// SlotOf is the slot of a key: by what is between the first braces if there is
// something, or else by all of it.
func (*Cluster) SlotOf(key string) int {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is the one called XMODEM.
func crc16(text string) (crc uint16) {
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
