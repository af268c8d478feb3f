package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/redislink"
)

// Versions of weir that share a Redis agree here on how they write state. The hash PREFIX%formats has an entry
// for each running store: which formats it can read, and until when that holds. A store writes a format that
// is newer than the first one only while s.knows(format): every running store can read it. It reads every
// format that it knows, at any time.

// firstFormat is what v0.1.0 writes. Every version that announces itself can read it. A new layout of
// state gets the next number, here and in knownFormats.
const firstFormat = 1

// manyHolds is the format of keys with many open holds; see lua/many_holds.lua.
const manyHolds = 2

// unitsOnLease is the format of keys with units on lease; see lua/leases.lua.
const unitsOnLease = 3

// knownFormats are those that this version reads.
var knownFormats = []int{firstFormat, manyHolds, unitsOnLease}

const (
	// formatsTTL is for how long an instance counts that was not heard of again.
	formatsTTL = time.Minute

	// announceEvery is the mean time between two announcements, announceFirst that before the first one:
	// a program that opens a store for a few checks and ends need not announce itself.
	announceEvery = 20 * time.Second
	announceFirst = time.Second
)

// formats is what a store knows of the formats that others can read.
type formats struct {
	own    []int
	id     string
	ttl    time.Duration
	now    func() time.Time
	logger *slog.Logger

	last   time.Time         // when it asked for the last answer that came
	since  map[int]time.Time // since when each answer has had a format with every instance
	told   string            // the kind of the error in the log
	agreed atomic.Pointer[agreement]
}

// agreement lists the formats that every instance can read, for as long as that can be relied on.
type agreement struct {
	formats []int
	until   time.Time
}

func newFormats(logger *slog.Logger) formats {
	host, _ := os.Hostname() // so that an operator finds the instance that is not upgraded
	host = strings.Join(strings.Fields(host[:min(len(host), 64)]), "")
	return formats{
		own: knownFormats, id: host + "/" + rand.Text()[:10], ttl: formatsTTL,
		now: time.Now, logger: cmp.Or(logger, slog.Default()),
	}
}

// announceScript stores the entry of an instance, or removes it if its ttl is 0, and returns which lists of
// formats the instances have. It removes entries that have expired. Entries may have more after
// the two words, for later versions.
var announceScript = newScript(`
local id, ttl, mine = string.match(ARGV[1], '^(%S+) (%d+) ([%d,]+)$')
if ttl == '0' then
  return tostring(redis.call('HDEL', KEYS[1], id))
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], id, string.format('%.0f %s', now + ttl, mine))
if redis.call('PTTL', KEYS[1]) < tonumber(ttl) then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
local entries, seen, lists = redis.call('HGETALL', KEYS[1]), {}, {}
for i = 1, #entries, 2 do
  local expires, list = string.match(entries[i + 1], '^(%d+) ([%d,]+)')
  if not expires or tonumber(expires) <= now then
    redis.call('HDEL', KEYS[1], entries[i])
  elseif not seen[list] then
    seen[list] = true
    lists[#lists + 1] = list
  end
end
return table.concat(lists, ' ')
`)

// start makes the link that of the store, which announces the formats and looks after Redis until Close. A store with a
// clock of its own is a test's, which may count keys and calls.
func (s *Store) start(l link) {
	s.link = l
	s.functions.loader, _ = l.client.(Loader)
	if s.clock != nil {
		return
	}
	s.repeat(announceFirst, announceEvery, s.announce)
	s.repeat(lookEvery, lookEvery, s.look)
}

// repeat does something now and then. That needs no goroutine in between: not every program closes its store.
func (s *Store) repeat(first, every time.Duration, work func()) {
	s.lanes.mu.Lock() // as aside does
	defer s.lanes.mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(around(first), func() {
		s.aside(func() {
			work()
			timer.Reset(around(every))
		})
	})
	s.timers = append(s.timers, timer)
}

// around returns a time of this mean, so that instances that start together do not stay together.
func around(d time.Duration) time.Duration { return d*3/4 + mathrand.N(d/2) }

// announce tells others what this store can read, and learns what they can.
func (s *Store) announce() {
	f := &s.formats
	asked := f.now()
	answer, err := s.sendEntry(f.ttl, s.link.patient)
	if err == nil {
		f.update(strings.Fields(answer), asked)
		return
	}
	// That Redis is unavailable is told elsewhere. Other answers stay so until somebody does something.
	if reply, ok := replyOf(err); ok && !redislink.Unavailable(err) {
		if kind, _, _ := strings.Cut(reply, " "); kind != f.told {
			f.told = kind
			f.logger.Warn("redis: the state formats of other instances are unknown; this one writes the first format", "key", s.formatsKey(),
				"error", err, "remedy", "give the user the rights in docs/guides/redis.md, or remove what else has this key")
		}
	}
}

// retract removes the entry when all calls have ended, so that others need not wait until it expires.
func (s *Store) retract() {
	if !s.formats.last.IsZero() {
		_, _ = s.sendEntry(0, s.timeout) // if that fails, it expires
	}
}

func (s *Store) sendEntry(ttl, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	own := strings.ReplaceAll(strings.Trim(fmt.Sprint(s.formats.own), "[]"), " ", ",")
	entry := fmt.Sprintf("%s %d %s", s.formats.id, ttl.Milliseconds(), own)
	return announceScript.run(ctx, s.link.client, []string{s.formatsKey()}, entry)
}

func (s *Store) formatsKey() string { return s.prefix + "%formats" }

// update learns from an answer. A format counts as known to all only if every answer has said so for a whole
// ttl, and none was missing for that long: when Redis has lost its data, instances are unknown until
// each has announced itself again.
func (f *formats) update(lists []string, asked time.Time) {
	since, next := map[int]time.Time{}, &agreement{until: asked.Add(formatsTTL)}
	for _, format := range f.own {
		text := strconv.Itoa(format)
		if slices.ContainsFunc(lists, func(list string) bool { return !slices.Contains(strings.Split(list, ","), text) }) {
			continue
		}
		from, ok := f.since[format]
		if !ok || asked.Sub(f.last) >= formatsTTL {
			from = asked
		}
		since[format] = from
		if asked.Sub(from) >= formatsTTL {
			next.formats = append(next.formats, format)
		}
	}
	f.since, f.last = since, asked
	f.agreed.Store(next)
}

// knows reports whether every instance can read a format, by the answers of the last minute. It sends nothing.
func (s *Store) knows(format int) bool {
	if format == firstFormat {
		return true
	}
	a := s.formats.agreed.Load()
	return a != nil && slices.Contains(a.formats, format) && s.formats.now().Before(a.until)
}
