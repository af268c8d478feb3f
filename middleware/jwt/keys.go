package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// Bounds on RSA keys: shorter ones are not safe, and longer ones take too long.
const minRSA, maxRSA = 2048, 8192

// keySet is what an issuer has published at some time. It does not change.
type keySet struct {
	sum  [sha256.Size]byte // of the text
	all  []jose.JSONWebKey
	byID map[string][]jose.JSONWebKey
}

// parseKeys reads a JSON Web Key Set. It skips keys of other kinds and for other uses, but one usable key
// must be there.
func parseKeys(text []byte) (*keySet, error) {
	var document struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, errors.New("this is not a JSON Web Key Set")
	}
	if len(document.Keys) > MaxKeys {
		return nil, fmt.Errorf("it has %d keys; the maximum is %d", len(document.Keys), MaxKeys)
	}
	set := &keySet{sum: sha256.Sum256(text), byID: map[string][]jose.JSONWebKey{}}
	for _, raw := range document.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) == nil && usable(&k) {
			set.all = append(set.all, k)
			set.byID[k.KeyID] = append(set.byID[k.KeyID], k)
		}
	}
	if len(set.all) == 0 {
		return nil, fmt.Errorf("none of its %d keys is a public RSA key of %d to %d bits, an elliptic curve key or an Ed25519 key for signatures", len(document.Keys), minRSA, maxRSA)
	}
	return set, nil
}

func usable(k *jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSA && key.N.BitLen() <= maxRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false // a secret, or nothing for signatures
}

// findKeys returns the keys for an algorithm with an id. Without an id it must be clear which one is meant.
func (s *keySet) findKeys(id string, a jose.SignatureAlgorithm) (found []jose.JSONWebKey) {
	from := s.byID[id]
	if id == "" {
		from = s.all
	}
	for _, k := range from {
		if fits(&k, a) {
			found = append(found, k)
		}
	}
	if id == "" && len(found) > 1 || len(found) > maxSameID {
		return nil
	}
	return found
}

// maxSameID is how many keys with the same id a token is tried with.
const maxSameID = 4

// has reports whether a key with the id is there, for whichever algorithm.
func (s *keySet) has(id string) bool { return len(s.byID[id]) > 0 }

// fits reports whether a key is for an algorithm, so that no token chooses how a key is used.
func fits(k *jose.JSONWebKey, a jose.SignatureAlgorithm) bool {
	if k.Algorithm != "" && k.Algorithm != string(a) {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return a[:2] == "RS" || a[:2] == "PS"
	case *ecdsa.PublicKey:
		return key.Curve == map[jose.SignatureAlgorithm]elliptic.Curve{jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521()}[a]
	case ed25519.PublicKey:
		return a == jose.EdDSA
	}
	return false
}
