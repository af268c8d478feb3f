package rule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errPrefix = errors.New("a prefix has 1 to 32 bits of an IPv4 address and 1 to 128 of an IPv6 address; write for example ip/24, ip6/48, or ip/24/48 for both")

// parsePrefixes parses an address of which only the beginning tells clients apart.
func parsePrefixes(text string) (s Source, err error) {
	kind, bits, _ := strings.Cut(text, "/")
	switch kind {
	case "ip":
		first, second, both := strings.Cut(bits, "/")
		if s.IPv4Bits, err = parseBits(first, 32); err == nil && both {
			s.IPv6Bits, err = parseBits(second, 128)
		}
	case "ip6":
		s.IPv6Bits, err = parseBits(bits, 128)
	default:
		err = fmt.Errorf("%q is unknown; write for example ip, ip/24 or ip6/48", kind)
	}
	if err != nil {
		return Source{}, err
	}
	return s, nil
}

func parseBits(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || text != strconv.Itoa(n) {
		return 0, errPrefix
	}
	return n, nil
}

// prefixes writes what parsePrefixes accepts.
func (s Source) prefixes() string {
	switch {
	case s.IPv4Bits == 0 && s.IPv6Bits == 0:
		return sourceNames[IP]
	case s.IPv4Bits == 0:
		return fmt.Sprintf("ip6/%d", s.IPv6Bits)
	case s.IPv6Bits == 0:
		return fmt.Sprintf("ip/%d", s.IPv4Bits)
	}
	return fmt.Sprintf("ip/%d/%d", s.IPv4Bits, s.IPv6Bits)
}
