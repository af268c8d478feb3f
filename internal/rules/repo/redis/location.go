package redis

import (
	"cmp"
	"context"
	"embed"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/rule"
)

// What Options stand for when they say nothing.
const (
	DefaultPrefix  = "weir:"
	DefaultTimeout = time.Second
)

// Options of a repository and of a store. The zero value is ready to use.
type Options struct {
	// Prefix begins every key. Default DefaultPrefix.
	Prefix string

	// Timeout is how long Redis may take for an answer. Default DefaultTimeout.
	Timeout time.Duration

	// Rules are the options with which the rules of a repository are compiled.
	Rules rule.Options
}

// pollEvery is how often a watch asks, give or take a fifth: instances that were started
// together should not ask together. With a margin, a change of which the message was
// lost is seen within a second.
const pollEvery = 500 * time.Millisecond

//go:embed script
var scripts embed.FS

var (
	readScript  = redislink.Script(scripts, "read")
	writeScript = redislink.Script(scripts, "common", "write")
	adoptScript = redislink.Script(scripts, "common", "adopt")

	storeReadScript  = redislink.Script(scripts, "store_read")
	storeWriteScript = redislink.Script(scripts, "store_write")
)

// location is the keys of a document, and the channel that tells of its changes.
type location struct {
	redislink.Conn
	poll    time.Duration
	keys    []string // as the scripts know them
	channel string
}

func (o Options) locate(client func() (rueidis.Client, error), who string, keys ...string) (location, error) {
	p := location{Conn: redislink.Conn{Name: who, Client: client, Timeout: o.Timeout}, poll: pollEvery}
	for _, key := range keys {
		p.keys = append(p.keys, cmp.Or(o.Prefix, DefaultPrefix)+key)
	}
	return p, p.Check(DefaultTimeout)
}

// exec runs a script that returns texts. The error is that of Redis.
func (p *location) exec(ctx context.Context, script *rueidis.Lua, args ...string) (answer []string, err error) {
	err = p.Do(ctx, func(ctx context.Context, c rueidis.Client) error {
		answer, err = script.Exec(ctx, c, p.keys, args).AsStrSlice()
		return err
	})
	return answer, err
}

// explain adds a remedy to errors of Redis that do not explain themselves.
func (p *location) explain(err error) error {
	keys := "the key " + p.keys[0]
	if len(p.keys) > 1 {
		keys = "one of the keys " + strings.Join(p.keys, ", ")
	}
	return p.Explain(keys, err)
}

// watch calls look at once, when a message tells of a change, and from time to time, until the
// context ends, which is its error.
func (p *location) watch(ctx context.Context, look func()) error {
	return redislink.Follow(ctx, p.Client, p.channel, p.poll, look)
}
