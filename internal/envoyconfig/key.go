package envoyconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unsafe"

	"github.com/weirhq/weir"
)

const (
	// maxValue is the longest value that stands in a key as it is.
	maxValue = 256

	// salt keeps these hashes apart from those of other programs.
	salt = "weir:envoy:"

	// hashBytes of a SHA-256 are enough: a value for a given hash cannot be found.
	hashBytes = 16
)

// AppendKey appends the key that a store counts by: "edge|path=/login|user=alice", the
// domain and every entry.
//
// Lists that differ in any part have different keys, whatever bytes are in them: "|",
// "=" and "\" have a "\" before them. A value of more than 256 bytes is hashed, and so
// is one whose key sounds as if it were a secret, such as authorization; then it begins
// with "\sha256:". A key that would be longer than weir.MaxKeyLen is a hash as a whole.
// It allocates nothing but room in dst.
func (d *Domain) AppendKey(dst []byte, entries []Entry) []byte {
	begin := len(dst)
	dst = appendEscaped(dst, d.Name)
	for i := range entries {
		e := &entries[i]
		dst = appendEscaped(append(dst, '|'), e.Key)
		dst = append(dst, '=')
		if len(e.Value) > maxValue || e.Value != "" && d.isSecret(e.Key) {
			from := len(dst)
			dst = append(append(append(append(dst, salt...), e.Key...), '='), e.Value...)
			dst = hashFrom(dst, from)
		} else {
			dst = appendEscaped(dst, e.Value)
		}
	}
	if len(dst)-begin > weir.MaxKeyLen {
		dst = hashFrom(dst, begin)
	}
	return dst
}

// hashFrom puts a hash in the place of all that follows.
func hashFrom(dst []byte, from int) []byte {
	sum := sha256.Sum256(dst[from:])
	return hex.AppendEncode(append(dst[:from], `\sha256:`...), sum[:hashBytes])
}

func appendEscaped(dst []byte, text string) []byte {
	if !strings.ContainsAny(text, `|=\`) {
		return append(dst, text...)
	}
	for i := range len(text) {
		if c := text[i]; c == '|' || c == '=' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return dst
}

// isSecret is whether the values of a key must not be seen in a store or a log.
func (d *Domain) isSecret(key string) bool {
	if secret, known := d.config.secrets[key]; known {
		return secret
	}
	return soundsSecret(key)
}

// secretWords are in the names of things that must not be seen. They are longer than
// one would think, since Envoy has keys such as generic_key, authority and authenticated.
var secretWords = []string{
	"apikey", "api_key", "api-key", "access_key", "access-key", "authorization", "authentication", "auth_", "auth-", "bearer",
	"cookie", "credential", "jwt", "password", "passwd", "secret", "session", "token",
}

func soundsSecret(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

// indexOf is bytes.Index without a copy of what is looked for.
func indexOf(text []byte, part string) int {
	return bytes.Index(text, unsafe.Slice(unsafe.StringData(part), len(part)))
}
