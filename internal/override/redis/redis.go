// Package redis keeps the document of overrides in Redis, for many instances at once.
//
// With the prefix "weir:", the key is weir:{overrides}, a hash with the fields sha256 and
// source. The channel weir:{overrides}:changed reports changes. The key does not expire,
// because each override has its own end, and weir removes past overrides.
package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/redislink"
)

// DefaultTimeout is long for one small answer.
const DefaultTimeout = time.Second

// Options of a place. The zero value is ready to use.
type Options struct {
	// Prefix begins every key. Default "weir:".
	Prefix string

	// Timeout is how long Redis may take for an answer. Default DefaultTimeout.
	Timeout time.Duration
}

// pollEvery is how often Watch calls look, ±20 %, so that it detects a change within a
// second even if the message was lost.
const pollEvery = 500 * time.Millisecond

// Place is a document in Redis. It is safe for concurrent use.
type Place struct {
	client  func() (rueidis.Client, error)
	timeout time.Duration
	poll    time.Duration
	keys    []string // one
	channel string
}

var _ override.Place = (*Place)(nil)

// Open returns a place in Redis. Redis may still be unavailable: client returns a client, or
// an error while there is none. Open sends nothing to Redis.
func Open(client func() (rueidis.Client, error), o Options) *Place {
	key := cmp.Or(o.Prefix, "weir:") + "{overrides}"
	return &Place{
		client: client, timeout: cmp.Or(o.Timeout, DefaultTimeout), poll: pollEvery,
		keys: []string{key}, channel: key + ":changed",
	}
}

//go:embed read.lua
var readText string

//go:embed write.lua
var writeText string

var readScript, writeScript = rueidis.NewLuaScript(readText), rueidis.NewLuaScript(writeText)

// Read implements override.Place.
func (p *Place) Read(ctx context.Context, known override.Revision) ([]byte, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	client, err := p.client()
	if err != nil {
		return nil, false, err
	}
	answer, err := readScript.Exec(ctx, client, p.keys, []string{string(known), strconv.Itoa(override.MaxDocument)}).AsStrSlice()
	switch {
	case err != nil:
		return nil, false, p.explain(err)
	case len(answer) == 0:
		return nil, false, nil
	case len(answer) == 1:
		return nil, false, fmt.Errorf("override: the document in %s has %s bytes; the maximum is %d; remove it", p.keys[0], answer[0], override.MaxDocument)
	}
	return []byte(answer[1]), true, nil
}

// Write implements override.Place. It never sends a write twice, because the second write
// would conflict with the first.
func (p *Place) Write(ctx context.Context, base override.Revision, source []byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	client, err := p.client()
	if err != nil {
		return err
	}
	done, err := writeScript.Exec(ctx, client, p.keys, []string{
		string(base), string(override.RevisionOf(source)), rueidis.BinaryString(source), p.channel,
	}).AsInt64()
	switch {
	case err != nil:
		return p.explain(err)
	case done == 0:
		return override.ErrChanged
	}
	return nil
}

// Watch implements override.Place.
func (p *Place) Watch(ctx context.Context, look func()) error {
	wake := make(chan struct{}, 1)
	var listener sync.WaitGroup
	listener.Go(func() {
		redislink.Listen(ctx, p.client, p.channel, p.poll, func() {
			select {
			case wake <- struct{}{}:
			default: // once is enough
			}
		})
	})
	defer listener.Wait()
	for ctx.Err() == nil {
		look()
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(clock.Jitter(p.poll)):
		}
	}
	return ctx.Err()
}

// explain adds a remedy to errors of Redis that do not explain themselves.
func (p *Place) explain(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return redislink.Explain("override", "the key "+p.keys[0], err)
}
