package jwt

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/weirhq/weir/rule"
)

// verified is a token that was verified. It is valid until it expires, or the keys of its issuer
// change.
type verified struct {
	issuer *issuer
	by     *keySet
	claims *rule.Claims
	until  time.Time
}

// table has tokens that were verified, by their hash. It is bounded: when the younger half is full, the
// older one is forgotten, except for what was used since.
type table struct {
	half int

	mu         sync.RWMutex
	young, old map[[sha256.Size]byte]*verified
}

func newTable(size int) *table {
	return &table{half: max(1, cmp.Or(size, 20_000)/2), young: map[[sha256.Size]byte]*verified{}}
}

func (t *table) findToken(sum [sha256.Size]byte) *verified {
	t.mu.RLock()
	e, isYoung := t.young[sum]
	if !isYoung {
		e = t.old[sum]
	}
	t.mu.RUnlock()
	if e != nil && !isYoung {
		t.put(sum, e)
	}
	return e
}

func (t *table) put(sum [sha256.Size]byte, e *verified) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.young) >= t.half {
		t.young, t.old = map[[sha256.Size]byte]*verified{}, t.young
	}
	t.young[sum] = e
}
