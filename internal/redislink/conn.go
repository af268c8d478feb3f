package redislink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Conn calls Redis for one store.
type Conn struct {
	// Client returns a client, or an error while there is none.
	Client func() (rueidis.Client, error)

	// Name begins the errors of the store.
	Name string

	// Timeout is the maximum duration of a call.
	Timeout time.Duration

	// Unavailable is the error of the store for a Redis that does not answer, or cannot execute
	// a command now. Default none: the error is that of Redis.
	Unavailable error
}

// Given returns Conn.Client for a client that exists, which the caller closes; nil for nil.
func Given(client rueidis.Client) func() (rueidis.Client, error) {
	if client == nil {
		return nil
	}
	return Of(client).Client
}

// Check returns an error if there is no client, or the timeout is negative, and replaces a timeout
// of 0.
func (c *Conn) Check(timeout time.Duration) error {
	switch {
	case c.Client == nil:
		return fmt.Errorf("%s: New requires a client; create one with rueidis.NewClient", c.Name)
	case c.Timeout < 0:
		return fmt.Errorf("%s: Timeout is negative; leave it 0 for the default", c.Name)
	}
	c.Timeout = cmp.Or(c.Timeout, timeout)
	return nil
}

// Do makes calls within the timeout. The error is that of the calls, or why there is no client.
func (c *Conn) Do(ctx context.Context, calls func(context.Context, rueidis.Client) error) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return calls(ctx, client)
}

// Run runs a script that returns an array, for a store with an error for an unavailable Redis. That
// is not the error of a call that its caller ends.
func (c *Conn) Run(ctx context.Context, script *rueidis.Lua, keys, args []string) *Answer {
	if err := ctx.Err(); err != nil {
		return c.Failed(err)
	}
	client, err := c.Client()
	if err != nil {
		return c.Failed(fmt.Errorf("%w; nothing was changed: %w", c.Unavailable, err))
	}
	ours := time.Now().Add(c.Timeout)
	limited, cancel := context.WithDeadline(ctx, ours)
	defer cancel()
	parts, err := script.Exec(limited, client, keys, args).ToArray()
	if err == nil {
		return &Answer{parts: parts, state: &state{name: c.Name}}
	}
	// The client may notice a deadline before the context does.
	theirs, ok := ctx.Deadline()
	if ctx.Err() != nil || ok && theirs.Before(ours) && errors.Is(err, context.DeadlineExceeded) {
		return c.Failed(fmt.Errorf("%s: the change may have been made: %w", c.Name, cmp.Or(ctx.Err(), context.DeadlineExceeded)))
	}
	return c.Failed(c.Explain(fmt.Sprintf("%q or a key beside it", keys[0]), err))
}

// Failed is the answer to a call that could not be made.
func (c *Conn) Failed(err error) *Answer { return &Answer{state: &state{name: c.Name, err: err}} }

// Explain returns an error of the store for one of the client, with a remedy where it does not
// explain itself. keys names the keys that another program may use; "" if that would be another
// error.
func (c *Conn) Explain(keys string, err error) error {
	reply := Reply(err)
	switch {
	case c.Unavailable != nil && reply == "" && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer within %v", c.Unavailable, c.Timeout)
	case c.Unavailable != nil && reply == "":
		return fmt.Errorf("%w: redis: %w", c.Unavailable, err)
	case c.Unavailable != nil && Unavailable(err):
		return fmt.Errorf("%w; nothing was changed: redis: %w", c.Unavailable, err)
	case strings.HasPrefix(reply, "MOVED "):
		return fmt.Errorf("%s: this is one node of a cluster; use a cluster's client: %w", c.Name, err)
	case keys != "" && strings.Contains(reply, "WRONGTYPE"):
		return fmt.Errorf("%s: something else uses %s; choose another prefix, or remove it: %w", c.Name, keys, err)
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}

// Reply returns the error with which Redis has replied; "" if an error does not come from there.
func Reply(err error) string {
	if reply, ok := errors.AsType[*rueidis.RedisError](err); ok {
		return reply.Error()
	}
	return ""
}

// unavailable are the codes of the replies with which Redis tells that it cannot execute
// a command now: it starts, a failover is in progress, the cluster moves a slot, its
// memory or its disk is full, or a script blocks it.
var unavailable = []string{
	"LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "READONLY", "NOREPLICAS", "MISCONF", "OOM", "BUSY",
}

// Unavailable reports whether err is a reply of a Redis that is unavailable. Redis has
// not executed the command.
func Unavailable(err error) bool {
	code, _, _ := strings.Cut(Reply(err), " ")
	return slices.Contains(unavailable, code)
}

// Script puts a script together from files of the folder script.
func Script(files fs.FS, names ...string) *rueidis.Lua {
	var all strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(files, "script/"+name+".lua")
		if err != nil {
			panic("redislink: there is no script " + name) // which every test would have found
		}
		all.Write(text)
	}
	return rueidis.NewLuaScript(all.String())
}

// Answer is what a script has returned. It is read part by part; Err, at the end, tells
// whether all parts were there and what they should be.
type Answer struct {
	parts []rueidis.RedisMessage
	state *state // shared with the answers within it
}

type state struct {
	name string
	err  error
}

// Err returns why there is no answer, or that it is none of our scripts.
func (a *Answer) Err() error { return a.state.err }

// Fail makes the answer one that cannot be used, unless it is already.
func (a *Answer) Fail(err error) {
	if a.state.err == nil {
		a.state.err = err
	}
}

// Must checks that the answer is as it should be.
func (a *Answer) Must(ok bool) {
	if !ok {
		a.Fail(fmt.Errorf("%s: unexpected answer from Redis; check for a proxy in between", a.state.name))
	}
}

// Result is what was read, and nothing with an error.
func Result[T any](read T, a *Answer) (T, error) {
	if err := a.Err(); err != nil {
		var nothing T
		return nothing, err
	}
	return read, nil
}

// Len returns how many parts are left to read.
func (a *Answer) Len() int { return len(a.parts) }

// next reads the next part as what it should be.
func next[T any](a *Answer, as func(*rueidis.RedisMessage) (T, error)) (value T) {
	if len(a.parts) == 0 {
		a.Must(false)
		return value
	}
	value, err := as(&a.parts[0])
	a.Must(err == nil)
	a.parts = a.parts[1:]
	return value
}

// Text reads a text.
func (a *Answer) Text() string { return next(a, (*rueidis.RedisMessage).ToString) }

// Bytes reads bytes.
func (a *Answer) Bytes() []byte { return next(a, (*rueidis.RedisMessage).AsBytes) }

// Int reads a whole number, which may come as text.
func (a *Answer) Int() int64 { return next(a, (*rueidis.RedisMessage).AsInt64) }

// List reads an array.
func (a *Answer) List() *Answer {
	return &Answer{next(a, (*rueidis.RedisMessage).ToArray), a.state}
}

// Lists reads all that is left, as arrays.
func (a *Answer) Lists() (all []*Answer) {
	for a.Len() > 0 {
		all = append(all, a.List())
	}
	return all
}
