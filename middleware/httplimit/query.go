package httplimit

import (
	"net/url"
	"strings"
)

// Query reads the query to the end, if it must: net/http has bounded its length, and to
// stop earlier would let a client hide a parameter behind others. A value that cannot be
// unescaped is taken as it is.
func (v *values) Query(name string, from int) (string, int) {
	query := v.r.URL.RawQuery
	for at := from; at < len(query); {
		pair, _, _ := strings.Cut(query[at:], "&")
		at += len(pair) + 1
		key, value, _ := strings.Cut(pair, "=")
		if !sameUnescaped(key, name) {
			continue
		}
		// No copy is made unless there is something to unescape.
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		if value != "" {
			return value, at
		}
	}
	return "", 0
}

// sameUnescaped reports whether a key as it stands in a query is this name. It makes
// no copy, so that a query of ten thousand escaped keys costs no memory.
func sameUnescaped(key, name string) bool {
	for i := 0; i < len(key); i++ {
		b := key[i]
		switch b {
		case '+':
			b = ' '
		case '%':
			if i+2 >= len(key) {
				return false
			}
			high, low := unhex(key[i+1]), unhex(key[i+2])
			if high > 15 || low > 15 {
				return false
			}
			b = high<<4 | low
			i += 2
		}
		if name == "" || name[0] != b {
			return false
		}
		name = name[1:]
	}
	return name == ""
}

// unhex is above 15 for what is no hexadecimal digit.
func unhex(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10
	}
	return 16
}
