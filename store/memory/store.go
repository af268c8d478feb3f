// Package memory is the store inside the process: no server, no goroutine, no
// allocation on the way.
//
// A key is remembered as 128 bits of a seeded hash and three words of state, in
// tables without pointers, so that the garbage collector does not see a million
// keys. Time passes only when somebody asks; keys that are fully reset go by
// themselves. The number of keys is bounded, and a flood of new ones never
// frees a client who is being limited while a recovered one could go instead.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/keyhash"
)

// DefaultMaxKeys is the bound on keys unless Options says otherwise. A key costs
// about 60 bytes, so a full store is about 60 MB. Two algorithms need more: a
// sliding_log 8 bytes for each unit that counts, and sliding_buckets 8 for each
// sub-window, both rounded up to a power of two.
const DefaultMaxKeys = 1 << 20

// Options of a store. The zero value is ready to use.
type Options struct {
	// MaxKeys is the most keys that are remembered at once. Default
	// DefaultMaxKeys. Fewer than weir.MaxOps, which one request may need, are
	// raised to that.
	MaxKeys int

	// Clock tells the time. Default the system's. It may step back: budget is
	// never minted, but keys that were charged later than now are frozen until
	// it has caught up.
	Clock func() weir.Micros
}

func (o Options) withDefaults() Options {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	o.MaxKeys = max(o.MaxKeys, weir.MaxOps)
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() weir.Micros { return weir.Micros(c.Now()) }
	}
	return o
}

// Store remembers keys in this process. It is safe for concurrent use.
type Store struct {
	maxKeys int64
	now     func() weir.Micros
	core    atomic.Pointer[core] // replaced only by Restore
}

// core is all that is remembered, under one seed.
type core struct {
	seed    [keyhash.SeedLen]byte
	hash    *keyhash.Hash
	shards  []shard
	shift   int          // what is left of a hash is the number of a shard
	keys    atomic.Int64 // entries, and those for which room was made
	cursor  atomic.Int64 // the shard in which the next search for room begins
	expired atomic.Int64
	evicted atomic.Int64
}

// Stats is what a store knows about itself.
type Stats struct {
	Keys    int64 // remembered now
	Expired int64 // forgotten since the start because they were fully reset
	Evicted int64 // forgotten since the start to make room, before they were
}

// New returns an empty store.
func New(o Options) *Store {
	o = o.withDefaults()
	s := &Store{maxKeys: int64(o.MaxKeys), now: o.Clock}
	var seed [keyhash.SeedLen]byte
	rand.Read(seed[:])
	s.core.Store(newCore(seed, o.MaxKeys))
	return s
}

// Shards are many enough to keep a sweep short, about 4096 keys of a full
// store, and goroutines apart.
const (
	minShards    = 64
	maxShards    = 4096
	keysPerShard = 4096
)

func newCore(seed [keyhash.SeedLen]byte, maxKeys int) *core {
	n := min(max(maxKeys/keysPerShard, minShards), maxShards)
	log := bits.Len(uint(n - 1))
	c := &core{seed: seed, hash: keyhash.New(seed), shards: make([]shard, 1<<log), shift: 64 - log}
	for i := range c.shards {
		c.shards[i].earliest.Store(math.MaxInt64)
	}
	return c
}

// A key that a store accepts must be one that can be hashed.
const _ = uint(keyhash.MaxLen - weir.MaxKeyLen)

// identify returns the id of an op's key and the shard that it is in.
func (c *core) identify(op *weir.Op) (id, *shard) {
	hi, lo := c.hash.Sum(op.Key, op.Limit.Kind())
	return id{hi, lo&^deniedBit | 1}, &c.shards[lo>>c.shift]
}

// Take implements weir.Store.
func (s *Store) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	if err := weir.ValidateTake(ops); err != nil {
		return dst, err
	}
	if len(ops) == 1 {
		dst = append(dst, weir.Decision{})
		s.take(&ops[0], &dst[len(dst)-1])
		return dst, nil
	}
	return s.takeMany(dst, ops), nil
}

// Unwrapped reports whether store is this one, and not something around it that
// has a Take of its own.
func (s *Store) Unwrapped(store weir.Store) bool {
	self, ok := store.(*Store)
	return ok && self == s
}

// TakeOne is Take for one op, without a slice for it or for the decision.
func (s *Store) TakeOne(ctx context.Context, key string, limit *weir.Compiled, cost int64) (d weir.Decision, err error) {
	if err := ctx.Err(); err != nil {
		return d, err
	}
	op := weir.Op{Key: key, Limit: limit, Cost: cost}
	if err := op.Validate(); err != nil {
		return d, err
	}
	s.take(&op, &d)
	return d, nil
}

// AllowOne is TakeOne for those who want to know no more than yes or no.
func (s *Store) AllowOne(ctx context.Context, key string, limit *weir.Compiled) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	op := weir.Op{Key: key, Limit: limit, Cost: 1}
	if err := op.Validate(); err != nil {
		return false, err
	}
	var d weir.Decision
	s.take(&op, &d)
	return d.Allowed, nil
}

// Peek implements weir.Store.
func (s *Store) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return dst, err
	}
	return s.peekMany(dst, ops), nil
}

// Refund implements weir.Store. The last op goes first, so that what was charged
// on top of another charge of the same request is off it before that is given back.
func (s *Store) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidateTake(ops)); err != nil {
		return err
	}
	c := s.core.Load()
	for i := len(ops) - 1; i >= 0; i-- {
		k, sh := c.identify(&ops[i])
		sh.mu.Lock()
		if slot, found := sh.table.find(k); found && sh.refundLocked(slot, &ops[i]) {
			c.keys.Add(-1)
		}
		sh.mu.Unlock()
	}
	return nil
}

// Reset implements weir.Store.
func (s *Store) Reset(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return err
	}
	c := s.core.Load()
	for i := range ops {
		k, sh := c.identify(&ops[i])
		sh.mu.Lock()
		if slot, found := sh.table.find(k); found {
			sh.removeLocked(slot)
			c.keys.Add(-1)
		}
		sh.mu.Unlock()
	}
	return nil
}

// Stats returns what the store knows about itself.
func (s *Store) Stats() Stats {
	c := s.core.Load()
	return Stats{Keys: c.keys.Load(), Expired: c.expired.Load(), Evicted: c.evicted.Load()}
}
