package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// marker begins a hash, so that it can be told from a value in clear.
	marker = "sha256:"

	// domain keeps these hashes apart from those of other programs.
	domain = "weir:"

	// hashBytes of a SHA-256 are enough: a value for a given hash cannot be found.
	hashBytes = 16
)

// HashAPIKey returns the hash that replaces an API key in identities, and so in stores,
// logs and statistics: "sha256:" and the first 32 hexadecimal digits of the SHA-256 of
// "weir:api_key:" plus the key. In a shell:
//
//	printf 'weir:api_key:%s' "$KEY" | sha256sum | cut -c1-32
//
// Rules can name a key by its hash, as in an override for "api_key:sha256:…". The hash
// protects only keys that cannot be guessed; short keys can be found by trying.
func HashAPIKey(key string) string {
	return string(appendHash(nil, hashOf(prefixAPIKey, key)))
}

// hashOf is of the identity that would be written in clear.
func hashOf(prefix, value string) (sum [sha256.Size]byte) {
	h := sha256.New()
	var chunk [sha256.BlockSize]byte
	for _, s := range [...]string{domain, prefix, value} {
		for s != "" {
			n := copy(chunk[:], s)
			h.Write(chunk[:n])
			s = s[n:]
		}
	}
	h.Sum(sum[:0])
	return sum
}

func appendHash(dst []byte, sum [sha256.Size]byte) []byte {
	return hex.AppendEncode(append(dst, marker...), sum[:hashBytes])
}

// isHash is whether a text is a hash as appendHash writes it.
func isHash(s string) bool {
	digits, found := strings.CutPrefix(s, marker)
	return found && len(digits) == 2*hashBytes && strings.Trim(digits, "0123456789abcdef") == ""
}

// secret reports whether the values of a source are secret, so that stores, logs,
// statistics and answers contain only their hashes. The name of a cookie or query
// parameter does not tell whether it is a credential, so all of them are secret.
// Headers and attributes are secret by their names.
func (s Source) secret() bool {
	switch s.Kind {
	case APIKey, Cookie, Query:
		return true
	case Header, Attribute:
		return soundsSecret(s.Name)
	}
	return false
}

// secretWords are in the names of things that must not be seen in a log.
var secretWords = []string{"auth", "bearer", "cookie", "credential", "csrf", "jwt", "key", "pass", "secret", "sess", "sign", "token"}

// soundsSecret errs on the side of hashing: an override works all the same.
func soundsSecret(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "sid") || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}
