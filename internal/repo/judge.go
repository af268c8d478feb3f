package repo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/weirhq/weir/rule"
)

// Digest tells documents apart.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a document.
func DigestOf(source []byte) Digest { return sha256.Sum256(source) }

// String writes it in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText is String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))]); err != nil || n != len(d) || len(text) != 2*len(d) {
		return errors.New("this is no digest")
	}
	return nil
}

// Judge tells which documents can be used. Compiling is slow, so it remembers results.
// It is safe for concurrent use.
type Judge struct {
	Name string // of the document, as in [rule.Parse]

	mu    sync.Mutex
	known map[Digest]error
}

// Usable is why a document cannot be used.
func (j *Judge) Usable(d Digest, source []byte) error {
	j.mu.Lock()
	why, known := j.known[d]
	j.mu.Unlock()
	if !known {
		_, why = rule.Usable(j.Name, source)
		j.Remember(d, why)
	}
	return why
}

// Remember takes note of what is known of a document.
func (j *Judge) Remember(d Digest, why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known == nil || len(j.known) >= MaxHistory {
		j.known = map[Digest]error{}
	}
	j.known[d] = why
}
