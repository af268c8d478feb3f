// Package memory is a store inside the process. It needs no server, no goroutine and no
// allocation per decision.
//
// The store keeps 128 bits of a seeded hash and three words of state for each key, in
// tables without pointers, so that the garbage collector need not scan a million keys.
// It reads the clock only when it is called, and drops keys that are fully reset. The
// number of keys is bounded. When a flood of new keys needs room, the store drops a key
// that is fully reset before one that is being limited. It never drops a key with an open
// hold.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/clock"
)

// DefaultMaxKeys is the default of Options.MaxKeys. A key takes about 60 bytes, so a
// full store takes about 60 MB. Two algorithms need more: sliding_log 8 bytes for each
// unit that counts, and sliding_buckets 8 bytes for each sub-window, both rounded up to
// a power of two.
const DefaultMaxKeys = 1 << 20

// Options configures a store. The zero value is ready to use.
type Options struct {
	// MaxKeys is the maximum number of keys. Default DefaultMaxKeys. Values below
	// weir.MaxOps are raised to it, because one request may need as many.
	MaxKeys int

	// Clock returns the time. Default the system clock. It may step back: no key gains
	// units, but keys that were charged after the new time do not change until the
	// clock has caught up.
	Clock func() weir.Micros
}

func (o Options) withDefaults() Options {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	o.MaxKeys = max(o.MaxKeys, weir.MaxOps)
	return o
}

// Store keeps the usage of keys in this process. It is safe for concurrent use.
type Store struct {
	maxKeys int64
	own     func() weir.Micros   // the clock of Options; nil if it has none
	clock   *clock.Clock         // then
	core    atomic.Pointer[core] // replaced only by Restore

	snapshot sync.Mutex // the one that is being written
}

// core is all that is remembered, under one seed.
type core struct {
	seed    [seedLen]byte
	hash    *keyHash
	shards  []shard
	shift   uint         // what is left of a hash is the number of a shard
	keys    atomic.Int64 // entries, and those for which room was made
	cursor  atomic.Int64 // the shard in which the next search for room begins
	expired atomic.Int64
	evicted atomic.Int64

	holds              []holdShard // by the ids of holds
	holdShift          uint
	maxHolds, maxParts int // of each of these shards: holds, and parts of open holds
	maxOfKey           int // open holds, at most
}

// Stats describes the keys of a store.
type Stats struct {
	Keys    int64 // kept now
	Expired int64 // removed since the start because their usage was back to zero
	Evicted int64 // removed since the start to make room, although they still had usage
}

// New returns an empty store.
func New(o Options) *Store {
	o = o.withDefaults()
	s := &Store{maxKeys: int64(o.MaxKeys), own: o.Clock}
	if s.own == nil {
		s.clock = clock.New()
	}
	var seed [seedLen]byte
	rand.Read(seed[:])
	s.core.Store(newCore(seed, o.MaxKeys))
	return s
}

// Shards are many enough to keep a sweep short, about 4096 keys of a full
// store, and goroutines apart. A small store has fewer: a shard keeps the memory of the
// most tails that it ever had, and among few keys that is many times the average.
const (
	minShards    = 64
	maxShards    = 4096
	keysPerShard = 4096
	fewKeys      = 512 // of a shard in a small store
)

func newCore(seed [seedLen]byte, maxKeys int) *core {
	n := min(max(maxKeys/keysPerShard, minShards), maxShards, max(1, maxKeys/fewKeys))
	log := bits.Len(uint(n - 1))
	c := &core{seed: seed, hash: newKeyHash(seed), shards: make([]shard, 1<<log), shift: uint(64 - log)}
	c.makeHoldShards(maxKeys)
	for i := range c.shards {
		c.shards[i].earliest.Store(math.MaxInt64)
		c.shards[i].releases = math.MaxInt64
	}
	return c
}

// at is the time of a reading.
func (s *Store) at(reading time.Duration) weir.Micros {
	if s.own != nil {
		return weir.Micros(reading / time.Microsecond)
	}
	return weir.Micros(s.clock.At(reading))
}

func (s *Store) now() weir.Micros {
	if s.own != nil {
		return s.own()
	}
	return weir.Micros(s.clock.Now())
}

// A key that a store accepts must be one that can be hashed.
const _ = uint(maxHashedLen - weir.MaxKeyLen)

// identify returns the id of an op's key and the shard that it is in.
func (c *core) identify(op *weir.Op) (id, *shard) {
	k := c.idOf(op.Key, op.Limit)
	return k, c.shardOf(k)
}

func (c *core) idOf(key string, limit *weir.Compiled) id {
	hi, lo := c.hash.Sum(key, limit.Kind())
	return id{hi, lo&^deniedBit | 1}
}

// shardOf returns the shard that a key is in.
func (c *core) shardOf(k id) *shard { return &c.shards[k.lo>>c.shift] }

// Take implements weir.Store.
func (s *Store) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	q := (*quick)(s)
	return q.TakeAt(ctx, q.Elapsed(), dst, ops...)
}

// Peek implements weir.Store.
func (s *Store) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return dst, err
	}
	return s.peekMany(dst, ops), nil
}

// Refund implements weir.Store. It refunds the last op first, so that of several
// charges to one key the later ones are undone before the earlier ones.
func (s *Store) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidateRefund(ops)); err != nil {
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
			sh.resetLocked(slot)
			sh.removeLocked(slot)
			c.keys.Add(-1)
		}
		sh.mu.Unlock()
	}
	return nil
}

// Stats returns the current numbers.
func (s *Store) Stats() Stats {
	c := s.core.Load()
	return Stats{Keys: c.keys.Load(), Expired: c.expired.Load(), Evicted: c.evicted.Load()}
}
