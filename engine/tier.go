package engine

import (
	"hash/maphash"
	"sync/atomic"
)

// Tier is the tier whose limits were used for a client, and where it comes from.
type Tier struct {
	Name string // "" for the limits without a tier
	From TierFrom
}

// TierFrom tells where a tier comes from.
type TierFrom uint8

const (
	NoTier      TierFrom = iota // no limit of the client depends on the tier
	AskedTier                   // the caller named it
	SeenTier                    // the tier of the client's last request
	UnknownTier                 // the client was not seen recently, and may have another tier
)

func (f TierFrom) String() string {
	return [...]string{"none", "asked", "seen", "unknown"}[f]
}

// tiers remembers the tier of each client's last request, for queries that do not name
// one. It is a table of fixed size in this process. Another client with the same place
// replaces the first. A place is 48 bits of the client's hash and 16 of the tier's; 0 is
// empty.
type tiers struct {
	seed   maphash.Seed
	places [tierPlaces]atomic.Uint64
}

const (
	tierPlaces = 1 << 14
	tierMask   = 1<<16 - 1
)

func newTiers() *tiers { return &tiers{seed: maphash.MakeSeed()} }

// mark stands for a tier; it is never 0.
func (t *tiers) mark(tier string) uint64 {
	if tier == "" {
		return 1
	}
	return max(maphash.String(t.seed, tier)&tierMask, 2)
}

func (t *tiers) place(key []byte) (at *atomic.Uint64, client uint64) {
	h := maphash.Bytes(t.seed, key)
	return &t.places[h%tierPlaces], h &^ tierMask
}

// remember takes note of a client's tier.
func (t *tiers) remember(key []byte, tier string) {
	at, client := t.place(key)
	if now := client | t.mark(tier); at.Load() != now { // mostly it is there
		at.Store(now)
	}
}

// find returns the tier of one of several clients, which is one that its rule names, or
// "": so it is, too, if the client came with a tier that none of the rules knows. Clients
// whose key contains their tier do not matter.
func (t *tiers) find(in *installed, clients []client) Tier {
	found := Tier{}
	for _, c := range clients {
		if _, told := c.rule.TierOf(c.key); told || !c.rule.ByTier(c.key) || in.replacement(c.rule, c.key) != nil {
			continue
		}
		at, client := t.place([]byte(c.key))
		seen := at.Load()
		mark := seen & tierMask
		if found.From = UnknownTier; mark == 0 || seen&^tierMask != client {
			continue
		}
		found.From = SeenTier
		for name := range c.rule.Tiers {
			if t.mark(name) == mark {
				found.Name = name
				return found
			}
		}
		return found
	}
	return found
}
