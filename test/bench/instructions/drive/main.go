// Command drive has weir's store ask a Redis that runs under callgrind in a directory, and prints how many
// instructions of Redis each kind of request takes alone, and in calls of fifty. It uses only what weir
// exports, so that it can be built with another version of weir: drive DIR PID CALLS [NAME].
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/redis"
)

// crowd is how many requests are in a call.
const crowd = 50

// kind is what is asked for: one request, or several one after the other.
type kind struct {
	name, limits string
	isHot        bool // all ask for one key
	steps        []step
}

type step func(s *redis.Store, ctx context.Context, c *client) error

// client is who asks, and what it was told last.
type client struct {
	ops       []weir.Op
	decisions []weir.Decision
	hold      weir.HoldID
	asked     bool
}

const three = "token_bucket 1000/1h, fixed_window 1000/1h, sliding_window 1000/1h"

var kinds = []kind{
	{"three limits", three, false, []step{take}},
	{"a bucket and a log", "token_bucket 1000/1h, sliding_log 1000/1h", false, []step{take}},
	{"a place: take, give back", "in_flight 1000/1h", false, []step{take, giveBack}},
	{"three limits: reserve, settle", three, false, []step{reserve, settle}},
}

func init() {
	for _, a := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "sliding_buckets"} {
		kinds = append(kinds, kind{a, a + " 1000/1h", false, []step{take}}, kind{a + ": reserve, settle", a + " 1000/1h", false, []step{reserve, settle}},
			kind{a + ", one key", a + " 100000/720h", true, []step{take}}, kind{a + ", one key, denied", a + " 10/720h", true, []step{beDenied}})
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return len(a.steps) - len(b.steps) })
}

// lend leases units of the keys of some kinds. Older versions of weir do not know how.
var lend = func(*server, string) {}

func main() {
	calls, names := must(strconv.Atoi(os.Args[3])), strings.Join(os.Args[4:], " ")
	s := connect(os.Args[1], os.Args[2], calls)
	lend(s, names)
	for _, k := range kinds {
		if strings.Contains(k.name, names) {
			must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{"Name": k.name, "Alone": s.alone(k, calls), "Crowded": s.crowded(k, calls)}))
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Panic(err)
	}
	return v
}

// clients returns a crowd whose keys nobody else has, and whose limits are the same.
func (k kind) clients(form string) (all []*client) {
	var ops []weir.Op
	for text := range strings.SplitSeq(k.limits, ", ") {
		ops = append(ops, weir.Op{Limit: weir.MustCompile(text), Cost: 1})
	}
	for i := range crowd {
		c := &client{ops: slices.Clone(ops)}
		for j := range ops {
			c.ops[j].Key = fmt.Sprintf("%s:%s:%04d", k.name, form, i)
			if k.isHot {
				c.ops[j].Key = fmt.Sprintf("%s:%s", k.name, form)
			}
		}
		all = append(all, c)
	}
	return all
}

func take(s *redis.Store, ctx context.Context, c *client) (err error) {
	c.decisions, err = s.Take(ctx, c.decisions[:0], c.ops...)
	return c.allowed(err)
}

// beDenied takes what is there the first time.
func beDenied(s *redis.Store, ctx context.Context, c *client) (err error) {
	c.decisions, err = s.Take(ctx, c.decisions[:0], c.ops...)
	if err == nil && c.asked && weir.Allowed(c.decisions) {
		err = fmt.Errorf("allowed: %+v", c.decisions)
	}
	c.asked = true
	return err
}

func giveBack(s *redis.Store, ctx context.Context, c *client) error {
	op := c.ops[0]
	op.Receipt = c.decisions[0].Receipt
	return s.Refund(ctx, op)
}

func reserve(s *redis.Store, ctx context.Context, c *client) (err error) {
	for i := range c.ops {
		c.ops[i].Cost = 10
	}
	c.hold = weir.NewHoldID()
	c.decisions, err = s.Reserve(ctx, c.decisions[:0], weir.Reservation{ID: c.hold}, c.ops...)
	return c.allowed(err)
}

func settle(s *redis.Store, ctx context.Context, c *client) error {
	settled, err := s.Settle(ctx, weir.Settlement{ID: c.hold, Used: func(_ string, cost int64) int64 { return cost / 2 }})
	if err == nil && settled.State != weir.HoldSettled {
		err = fmt.Errorf("not settled: %+v", settled)
	}
	return err
}

func (c *client) allowed(err error) error {
	if err == nil && !weir.Allowed(c.decisions) {
		err = fmt.Errorf("denied: %+v", c.decisions)
	}
	return err
}

// server is the Redis.
type server struct {
	dir, pid string
	dumps    int
	client   rueidis.Client
	store    *redis.Store
	gate     gate
	plug     *client // who is on the way while a crowd gathers
	plugCost float64
}

func connect(dir, pid string, calls int) *server {
	s := &server{dir: dir, pid: pid, gate: gate{arrived: make(chan struct{}, 2)}}
	s.client = must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"redis:6379"}, ForceSingleClient: true, DisableRetry: true, DisableCache: true, DisableAutoPipelining: true,
		ConnWriteTimeout: time.Minute, Dialer: net.Dialer{KeepAlive: time.Hour}, // so that no PING comes between
		DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "unix", filepath.Join(dir, "redis"))
			return gated{conn, &s.gate}, err
		},
	}))
	// With a clock of its own, a store tells nobody of itself, which would be further calls now and then.
	clock := func() weir.Micros { return weir.MicrosOf(time.Now()) }
	s.store = must(redis.New(s.client, redis.Options{Timeout: time.Minute, Clock: clock}))
	plug := kind{"plug", "fixed_window 1000000/1h", false, []step{take}}
	s.plug = plug.clients("plug")[0]
	for ran := 0; ran != 1; { // until Redis has the functions
		before := s.calls()
		must(0, take(s.store, context.Background(), s.plug))
		ran = s.calls() - before
	}
	s.plugCost = s.alone(plug, calls)
	return s
}

// alone is what one takes that has its calls to itself.
func (s *server) alone(k kind, calls int) float64 {
	all := k.clients("alone")
	return s.count(crowd, calls, len(k.steps), func(i int) {
		for _, step := range k.steps {
			must(0, step(s.store, context.Background(), all[i%crowd]))
		}
	})
}

// crowded is what each of a crowd takes that shares its calls. Two plugs are on their way while it gathers,
// which is as many calls as a store makes at a time.
func (s *server) crowded(k kind, calls int) float64 {
	all := k.clients("crowd")
	cost := s.count(2, max(2, calls/5), 3*len(k.steps), func(int) { // many, because Lua's collector comes seldom
		for _, step := range k.steps {
			var waiting, ended sync.WaitGroup
			s.gate.Lock()
			for range 2 {
				ended.Go(func() { must(s.store.Take(context.Background(), nil, s.plug.ops...)) })
				<-s.gate.arrived
			}
			for _, c := range all {
				waiting.Add(1)
				ctx := waiter{context.Background(), sync.OnceFunc(waiting.Done)}
				ended.Go(func() { must(0, step(s.store, ctx, c)) })
			}
			waiting.Wait()
			s.gate.Unlock()
			ended.Wait()
		}
	})
	return (cost - float64(2*len(k.steps))*s.plugCost) / crowd
}

// count is how many instructions it takes to do something, which is so many calls. Before that it is done so
// often that all keys are there.
func (s *server) count(first, times, calls int, do func(i int)) float64 {
	for i := range first {
		do(i)
	}
	before := s.calls()
	s.dump() // which begins at 0
	for i := range times {
		do(i)
	}
	total := s.dump()
	// Of a key with leases, the store asks twice once a second, and when these must last longer.
	if n := s.calls() - before; n < times*calls || n > times*calls*5/4 {
		log.Panicf("there were %d calls, not %d", n, times*calls)
	}
	return total / float64(times)
}

var totals, callsOf = regexp.MustCompile(`(?m)^totals: (\d+)`), regexp.MustCompile(`cmdstat_(?:evalsha|eval|fcall):calls=(\d+)`)

// dump returns how many instructions there were since the last.
func (s *server) dump() float64 {
	must(exec.Command("vgdb", "--pid="+s.pid, "dump").Output())
	s.dumps++
	text := must(os.ReadFile(filepath.Join(s.dir, "callgrind."+strconv.Itoa(s.dumps))))
	return must(strconv.ParseFloat(string(totals.FindSubmatch(text)[1]), 64))
}

// calls is how many scripts and functions Redis has run.
func (s *server) calls() (sum int) {
	text := must(s.client.Do(context.Background(), s.client.B().Info().Section("commandstats").Build()).ToString())
	for _, found := range callsOf.FindAllStringSubmatch(text, -1) {
		sum += must(strconv.Atoi(found[1]))
	}
	return sum
}

// waiter is the context of somebody who is known to wait when its end is asked for.
type waiter struct {
	context.Context
	waits func()
}

func (w waiter) Done() <-chan struct{} {
	w.waits()
	return w.Context.Done()
}

// gate stops what is written to Redis while it is locked.
type gate struct {
	sync.RWMutex
	arrived chan struct{}
}

type gated struct {
	net.Conn
	gate *gate
}

func (c gated) Write(b []byte) (int, error) {
	if !c.gate.TryRLock() {
		c.gate.arrived <- struct{}{}
		c.gate.RLock()
	}
	defer c.gate.RUnlock()
	return c.Conn.Write(b)
}
